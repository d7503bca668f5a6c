"""Cells selected and reduced to one number a model, with an interval that is never too narrow for what is known.

Our choice: means of fully dependent cells; a peak reaches as far as any cell's bound beyond it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from isotrace.dynamics.declared import Comparison, Reduction
from isotrace.seeding import generator

VALUES = ("estimate", "lo", "hi")


@dataclass(frozen=True)
class Resampling:
    """How cells are resampled: seed, number of resamples, level of the interval."""

    seed: int
    resamples: int
    confidence: float


def _blocks(frame: pd.DataFrame) -> pd.Series:
    return frame["site"].str.startswith("block.")


def _first_block(frame: pd.DataFrame) -> pd.Series:
    depth = frame["layer"].where(_blocks(frame)).astype(float)
    return depth == depth.groupby(frame["model"]).transform("min")


def _last_block(frame: pd.DataFrame) -> pd.Series:
    depth = frame["layer"].where(_blocks(frame)).astype(float)
    return depth == depth.groupby(frame["model"]).transform("max")


def _training(frame: pd.DataFrame) -> pd.Series:
    """Cells of series that were trained: untrained checkpoints alone have no early, late, first or last one."""
    return (frame["step"] > 0).groupby(frame["model"]).transform("any")


SELECTORS: dict[str, dict[str, Callable[[pd.DataFrame], pd.Series]]] = {
    "sites": {
        "embed": lambda f: f["site"] == "embed",
        "blocks": _blocks,
        "first_block": _first_block,
        "last_block": _last_block,
        "final_norm": lambda f: f["site"] == "final_norm",
    },
    "checkpoints": {
        "untrained": lambda f: f["step"] == 0,
        "trained": lambda f: f["step"] > 0,
        "training": _training,
        "first": lambda f: _training(f) & (f["step"] == f.groupby("model")["step"].transform("min")),
        "last": lambda f: _training(f) & (f["step"] == f.groupby("model")["step"].transform("max")),
        "early": lambda f: _training(f) & (f["phase"] == "early"),
        "late": lambda f: _training(f) & (f["phase"] == "late"),
    },
    "buckets": {
        "most_frequent": lambda f: f["bucket"] == "b0",
        "less_frequent": lambda f: ~f["bucket"].isin(["b0", "all"]),
    },
}


def select(frame: pd.DataFrame, wanted: Mapping[str, str]) -> pd.DataFrame:
    """The cells that every named selector keeps; ``last`` and the like are taken within each model."""
    for kind, name in wanted.items():
        if name != "all" and len(frame):
            frame = frame[SELECTORS[kind][name](frame).to_numpy()]
    return frame


def unmet(frame: pd.DataFrame, wanted: Mapping[str, str]) -> dict[str, str]:
    """By model, what none of its cells is, in words; models of which ``select`` keeps cells are left out."""
    found: dict[str, str] = {}
    for model, rows in frame.groupby("model"):
        for kind, name in wanted.items():
            rows = select(rows, {kind: name})
            if rows.empty:
                what = f"no {name.replace('_', ' ')} {kind.removesuffix('s')}"
                untrained = kind == "checkpoints" and bool((frame.loc[frame["model"] == model, "step"] == 0).all())
                found[str(model)] = f"{what}: every one is untrained" if untrained else f"{what} in this series"
                break
    return found


def _means(frame: pd.DataFrame, left: list[str], *, log: bool) -> pd.DataFrame:
    """Mean of estimates and of bounds; missing as soon as one cell is, or the model's other groups have more."""
    values = frame[list(VALUES)].astype(float)
    if log:
        values = values.where(values > 0).transform(np.log)
    grouped = values.assign(**{k: frame[k] for k in left}).groupby(left, sort=True)
    size = grouped.size()
    whole = size.groupby(level="model").transform("max") if "model" in left else size.max()
    means = grouped.mean().where(grouped.count().eq(size, axis=0)).where(size == whole)
    return (means.transform(np.exp) if log else means).assign(at=frame.groupby(left, sort=True)["at"].first())


def _peaks(frame: pd.DataFrame, left: list[str], over: Sequence[str], *, sign: int) -> pd.DataFrame:
    """The cell with the largest (``sign`` 1) or smallest (-1) estimate, and where it was.

    A cell with a lesser estimate but a wider interval may be the true peak: the outer bound is the outermost of all.
    """
    order = (-sign * frame["estimate"].astype(float)).sort_values(kind="stable", na_position="last").index
    best = frame.loc[order].groupby(left, sort=True).head(1)
    place = best[list(over)].astype(str).agg(", ".join, axis=1)
    place = place.str.cat(best["at"].where(best["at"] == "", ", " + best["at"])).where(best["estimate"].notna(), "")
    peaks = best.assign(at=place).set_index(left)[[*VALUES, "at"]]
    outer, outermost = ("hi", "max") if sign == 1 else ("lo", "min")
    farthest = frame.groupby(left, sort=True)[outer].agg(outermost)
    return peaks.assign(**{outer: farthest.where(peaks[outer].notna())})


def _bootstrapped(frame: pd.DataFrame, left: list[str], how: Resampling) -> pd.DataFrame:
    """Mean over cells with the percentile interval of resampled cells; missing when one cell is."""
    tail = (1 - how.confidence) / 2
    rows = {}
    for key, group in frame.groupby(left, sort=True):
        values = group["estimate"].to_numpy(float)
        rng = generator(how.seed, "cells", len(values))
        means = values[rng.integers(len(values), size=(how.resamples, len(values)))].mean(axis=1)
        interval = np.quantile(means, [tail, 1 - tail]) if len(values) > 1 else [np.nan, np.nan]
        rows[key] = [values.mean(), *interval, ""]
    names = pd.MultiIndex.from_tuples(list(rows), names=left)
    return pd.DataFrame(list(rows.values()), index=names, columns=[*VALUES, "at"])


def reduce(frame: pd.DataFrame, steps: Sequence[Reduction], keys: Sequence[str], how: Resampling) -> pd.DataFrame:
    """One row for each combination of ``keys`` that no step reduces over: keys, estimate, lo, hi, missing, at.

    ``missing`` counts cells without a value that a peak passed over; ``at`` says where a peak is. A mean over an
    incomplete set of cells (fewer than the model's largest) is missing itself: it would mean something else.
    """
    left = list(keys)
    # A constant key keeps a group to stand on when a step reduces over everything else.
    known: dict[str, Any] = {"": 0} if "missing" in frame else {"": 0, "missing": 0, "at": ""}
    frame = frame.assign(**known)[["", *left, *VALUES, "missing", "at"]].reset_index(drop=True)
    for name, over in steps:
        left = [k for k in left if k not in over]
        if frame.empty:
            break
        by = ["", *left]
        lost = frame["missing"].where(frame["missing"] > 0, frame["estimate"].isna().astype(int))
        if name in ("max", "min"):
            reduced = _peaks(frame, by, over, sign=1 if name == "max" else -1)
        elif name == "bootstrap_mean":
            reduced = _bootstrapped(frame, by, how)
        else:
            reduced = _means(frame, by, log=name == "geometric_mean")
        frame = reduced.assign(missing=lost.groupby([frame[k] for k in by], sort=True).sum()).reset_index()
    return frame[[*left, *VALUES, "missing", "at"]]


def compare(left: pd.DataFrame, right: pd.DataFrame, how: Comparison, keys: Sequence[str]) -> pd.DataFrame:
    """Left minus right, of natural logs for ``log_ratio``; the interval is the worst case of both sides.

    ``missing`` and ``missing_right`` count the cells that each side's peaks passed over.
    """
    on = [k for k in keys if k in left and k in right]
    suffixes = ("", "_right")
    pairs = left.merge(right, on=on, suffixes=suffixes) if on else left.merge(right, how="cross", suffixes=suffixes)
    if how == "log_ratio":
        for name in (*VALUES, *(f"{v}_right" for v in VALUES)):
            pairs[name] = np.log(pairs[name].astype(float).where(pairs[name].astype(float) > 0))
    against = {"estimate": "estimate_right", "lo": "hi_right", "hi": "lo_right"}
    values = {name: pairs[name] - pairs[other] for name, other in against.items()}
    at = pairs["at"].str.cat(pairs["at_right"], sep=" against ").where(pairs["at"] != pairs["at_right"], pairs["at"])
    lost = {name: pairs[name] for name in ("missing", "missing_right")}
    return pd.DataFrame({**{k: pairs[k] for k in on}, **values, **lost, "at": at})
