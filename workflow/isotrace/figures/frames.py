"""From result tables to the rows a figure draws: which rows, odds intervals, means over buckets, seeds, phases.
Ratio as odds of the energy fraction: Bernas et al. 2026 against a Haar complement; aggregation is our choice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isotrace.errors import ConfigError, DataError
from isotrace.figures.marks import own, with_status

BASES = ("fixed", "moving")


def table(tables: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """The table called ``name`` without checkpoints that are copies of another or broken.

    Raises DataError when a figure that needs it was not given it.
    """
    return own(every_checkpoint(tables, name))


def every_checkpoint(tables: Mapping[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """The table called ``name`` with a column ``status`` (ok, duplicate, broken); DataError as for ``table``."""
    if name not in tables:
        raise DataError(f"table {name!r} is needed here but was not given")
    return with_status(tables[name])


def one_a_group(tables: Mapping[str, pd.DataFrame], groups: Mapping[str, str]) -> dict[str, pd.DataFrame]:
    """The tables with runs of a group (``groups``: {model: group}) as one model of several seeds.

    A figure then has one panel a group, whose lines are means over runs and whose shading is their range: a line a
    run, bucket and basis would leave nothing to see. A table without seeds (of single tokens) keeps each group's
    first run, for tokens of several models are no average.
    """
    first = {groups[run]: run for run in reversed(list(groups))}
    others = set(groups) - set(first.values())
    found = dict(tables)
    for name, frame in tables.items():
        if "model" in frame:
            kept = frame if "seed" in frame else frame[~frame["model"].isin(others)]
            found[name] = kept.assign(model=kept["model"].replace(dict(groups)))
    return found


def pick(frame: pd.DataFrame, **wanted: Any) -> pd.DataFrame:
    """Rows whose columns equal the given values; a list or tuple means any of its members."""
    keep = np.ones(len(frame), dtype=bool)
    for column, value in wanted.items():
        members = list(value) if isinstance(value, list | tuple) else [value]
        keep &= frame[column].isin(members).to_numpy()
    return frame[keep]


def rank_of(frame: pd.DataFrame, options: Mapping[str, Any]) -> int:
    """``options["rank"]``, or 8 if it was computed, or else the smallest rank in ``frame``.

    Raises ConfigError when the rank asked for is not in the table.
    """
    ranks = sorted({int(r) for r in frame["rank"].dropna()})
    if "rank" not in options:
        return 8 if 8 in ranks or not ranks else ranks[0]
    rank = int(options["rank"])
    if ranks and rank not in ranks:
        raise ConfigError(f"dynamics.rank: {rank} is not among the computed ranks {ranks}")
    return rank


def natural(name: str) -> tuple[tuple[int, int | str], ...]:
    """A sorting key by which b2 comes before b10."""
    return tuple((0, int(p)) if p.isdigit() else (1, p) for p in re.split(r"(\d+)", str(name)) if p)


def in_order(names: Sequence[str] | pd.Series) -> list[str]:
    """The distinct ``names`` in natural order."""
    return sorted({str(n) for n in names}, key=natural)


def sites_in_order(frame: pd.DataFrame) -> list[str]:
    """The sites of ``frame`` by depth."""
    depth = frame.groupby("site")["layer"].min()
    return [str(s) for s in sorted(depth.index, key=lambda s: (depth[s], natural(s)))]


def blocks(frame: pd.DataFrame) -> list[str]:
    """The blocks among the sites of ``frame``, first to last."""
    return [s for s in sites_in_order(frame) if s.startswith("block.")]


def end_blocks(frame: pd.DataFrame, options: Mapping[str, Any]) -> list[str]:
    """``options["sites"]`` as far as ``frame`` has them, else its first and last block, else its last site."""
    sites = sites_in_order(frame)
    if options.get("sites"):
        return [s for s in sites if s in set(options["sites"])]
    inner = blocks(frame)
    return list(dict.fromkeys([inner[0], inner[-1]])) if inner else sites[-1:]


def spread(names: Sequence[str], most: int) -> list[str]:
    """At most ``most`` of ``names``, evenly spaced, the first and last among them."""
    if len(names) <= most:
        return list(names)
    if most == 1:
        return [names[-1]]
    return [names[i] for i in np.unique(np.linspace(0, len(names) - 1, most).round().astype(int))]


RUN = ("study", "model", "seed", "checkpoint", "step", "tokens_seen", "progress", "phase", "status")


def with_tombstones(rows: pd.DataFrame, table: pd.DataFrame, *, line: Sequence[str]) -> pd.DataFrame:
    """``rows`` plus one without values for each series of a checkpoint that ``table`` knows only by its reason.

    ``line`` names the columns that tell series apart (site, basis, bucket); a tombstone of one bucket concerns that
    bucket's series only. So a broken checkpoint leaves a mark in a figure instead of a line through its place.
    """
    nowhere = table["site"] == "" if "site" in table else table["layer"].isna()
    lost = table[nowhere & (table["reason"] != "")]
    if lost.empty or rows.empty:
        return rows
    lost = lost[[c for c in (*RUN, "reason") if c in rows]].assign(only=lost.get("bucket", ""))
    made = rows[["model", *line]].drop_duplicates().merge(lost, on="model")
    if "bucket" in line:
        made = made[(made["only"] == "") | (made["only"] == made["bucket"])]
    return pd.concat([rows, made.drop(columns="only")], ignore_index=True)


def ratios(energy: pd.DataFrame) -> pd.DataFrame:
    """Energy rows with ``ratio_lo``, ``ratio_hi`` (the energy's interval) and ``null_lo``, ``null_hi``.

    For the complement null the ratio is the odds of the energy fraction times a constant, and so its interval is
    the energy's interval in odds; for the ambient null it is the energy times a constant. The null's band is what
    the ratio would be for a random subspace: 1 +- 2 exact standard deviations, relative to the exact mean.
    """
    out = energy.copy()
    share, low, high = (out[c].to_numpy(float) for c in ("energy", "energy_lo", "energy_hi"))
    ratio = out["ratio"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = [np.where(out["null_space"] == "complement", e / (1 - e), e) for e in (share, low, high)]
        out["ratio_lo"], out["ratio_hi"] = ratio * odds[1] / odds[0], ratio * odds[2] / odds[0]
        sd = out["null_sd_exact"].to_numpy(float) / out["null_mean_exact"].to_numpy(float)
    out["null_lo"], out["null_hi"] = 1 - 2 * sd, 1 + 2 * sd
    return out


def over_seeds(frame: pd.DataFrame, keys: Sequence[str], value: str, *, log: bool = False) -> pd.DataFrame:
    """One row per ``keys``: the mean of ``value`` over seeds, ``lo``, ``hi`` and what the interval is.

    With one seed the interval is the one that the rows carry (columns ``lo``, ``hi``); with several it is their
    range. ``log`` takes the geometric mean. Rows without a value count only where nothing else is left; their
    reason is kept then. Raises DataError when one seed has several rows: their mean would be of unlike things.
    """
    rows: list[dict[str, Any]] = []
    for key, group in frame.groupby(list(keys), sort=True, dropna=False):
        found = group[np.isfinite(group[value].to_numpy(float))]
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        if "seed" in group and group["seed"].duplicated().any():
            raise DataError(f"{len(group)} rows where one is needed, for {row}: choose between them in the options")
        x = found[value].to_numpy(float)
        if len(found) == 0:
            reason = next((str(r) for r in group["reason"] if r), "no value")
            row |= {value: np.nan, "lo": np.nan, "hi": np.nan, "seeds": 0, "interval": "", "reason": reason}
        elif len(found) == 1:
            lo, hi = float(found["lo"].iloc[0]), float(found["hi"].iloc[0])
            row |= {value: x[0], "lo": lo, "hi": hi, "seeds": 1, "interval": "within the run", "reason": ""}
        else:
            mean = float(np.exp(np.log(x).mean())) if log else float(x.mean())
            row |= {value: mean, "lo": x.min(), "hi": x.max(), "seeds": len(x)}
            row |= {"interval": "range over seeds", "reason": ""}
        rows.append(row)
    return pd.DataFrame(rows, columns=[*keys, value, "lo", "hi", "seeds", "interval", "reason"])


def geometric_mean(frame: pd.DataFrame, keys: Sequence[str]) -> pd.DataFrame:
    """The geometric mean of ``ratio`` per ``keys`` over everything else, with ``lo`` and ``hi``.

    The interval combines those of the rows as if all erred together (the mean of log limits): they read the same
    sequences, and this is the widest they can jointly be. Rows without a finite positive ratio are left out.
    """
    usable = frame[np.isfinite(frame["ratio"].to_numpy(float)) & (frame["ratio"].to_numpy(float) > 0)]
    rows: list[dict[str, Any]] = []
    for key, group in usable.groupby(list(keys), sort=True, dropna=False):
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        for column, source in (("ratio", "ratio"), ("lo", "ratio_lo"), ("hi", "ratio_hi")):
            x = group[source].to_numpy(float)
            row[column] = float(np.exp(np.log(x).mean())) if np.all(x > 0) else np.nan
        rows.append(row | {"n_rows": len(group)})
    return pd.DataFrame(rows, columns=[*keys, "ratio", "lo", "hi", "n_rows"])


def mean_of_all(limits: pd.Series) -> float:
    """The mean of interval limits, NaN as soon as one is missing: half an interval would look too narrow."""
    return float(limits.mean(skipna=False))
