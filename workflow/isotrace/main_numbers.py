"""The main numbers of a study, each with its interval: what `headline` says in words and `compare` sets side by side.
Quantities of Bernas et al. 2026 (energy ratio, ablation) and Godey et al. 2024 (mean cosine); their choice is ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from isotrace.figures import frames

Tables = Mapping[str, pd.DataFrame]
Options = Mapping[str, Any]


@dataclass(frozen=True)
class Number:
    """One number of one run.

    lo, hi: of its interval over sequences within the run, NaN where it has none; step: None for a mean over several;
    n: null draws or buckets that it rests on, 0 where that says nothing; of: the estimator or basis; rank: 0 for none.
    """

    run: str
    key: str
    value: float
    lo: float = float("nan")
    hi: float = float("nan")
    site: str = ""
    step: int | None = None
    n: int = 0
    of: str = ""
    rank: int = 0


LABELS = {
    "energy_peak": "peak gradient energy ratio",
    "energy_early": "gradient energy ratio there, early training",
    "isotropy": "late isotropy of gradients",
    "isotropy_without_tangent": "late isotropy without the tangent",
    "isotropy_without_normal": "late isotropy without a normal subspace",
    "isotropy_p": "largest p of the removal",
    "cosine_peak": "peak mean cosine",
    "cosine_first": "mean cosine, first checkpoint",
    "cosine_last": "mean cosine, last checkpoint",
}
"""What each key is, in a few words."""
RATIOS = ("energy_peak", "energy_early")
"""Keys whose numbers are multiples, to be compared as quotients."""


def main_numbers(tables: Tables, *, rank: int | None = None, method: str = "pca") -> list[Number]:
    """Energy, ablation and cosine of every run; what a missing table would have said is left out.

    rank: 8 where it was computed, else the smallest. ConfigError for a rank that was not.
    """
    options: dict[str, Any] = {"method": method} | ({"rank": rank} if rank is not None else {})
    parts = (("energy", energy), ("isotropy", isotropy), ("geometry", cosine))
    return [n for name, numbers in parts if name in tables for n in numbers(tables[name], options)]


def _runs(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each run by name; the seed is named only where a model has several."""
    seeds = rows.groupby("model")["seed"].nunique().to_dict()
    for (model, seed), run in rows.groupby(["model", "seed"], dropna=False):
        yield (f"{model} (seed {seed})" if seeds[model] > 1 else str(model)), run


def energy(table: pd.DataFrame, options: Options) -> list[Number]:
    """By run and basis: the peak over sites and steps of the mean ratio over buckets, and its early mean there."""
    rows = frames.pick(
        table, quantity="gradient", method=options["method"], null_space="complement", basis=frames.BASES
    )
    rank = frames.rank_of(rows, options)
    rows = frames.ratios(frames.pick(rows, rank=rank))
    found = []
    for name, run in _runs(rows):
        means = frames.geometric_mean(run, ["basis", "site", "layer", "checkpoint", "step"])
        for basis, line in means.groupby("basis"):
            top = line.iloc[int(np.argmax(line["ratio"]))]
            at = (run["phase"] == "early") & (run["site"] == top["site"]) & (run["basis"] == basis)
            found.append(_ratio(name, "energy_peak", top, top["site"], basis, rank, int(top["step"])))
            early = frames.geometric_mean(run[at], ["site"])
            found += [_ratio(name, "energy_early", early.iloc[0], top["site"], basis, rank)] if len(early) else []
    return found


def _ratio(run: str, key: str, row: pd.Series, site: str, basis: Any, rank: int, step: int | None = None) -> Number:
    numbers = {"value": row["ratio"], "lo": row["lo"], "hi": row["hi"], "n": int(row["n_rows"])}
    return Number(run, key, **numbers, site=site, step=step, of=str(basis), rank=rank)


def isotropy(table: pd.DataFrame, options: Options) -> list[Number]:
    """By run: late isotropy of the last block's gradients, without the tangent, without a matched normal subspace."""
    rows = frames.pick(table, quantity="gradient", basis="fixed", method=options["method"])
    rows = frames.pick(rows, convention="complement", outliers="kept", null_space="complement")
    rank = frames.rank_of(rows, options)
    rows = frames.pick(rows, rank=rank)
    found = []
    for name, run in _runs(rows):
        last = (frames.blocks(run) or frames.sites_in_order(run))[-1]
        late = frames.pick(run, site=last, phase="late")
        for estimator in ("corrected", "plugin"):
            used = frames.pick(late, estimator=estimator).dropna(subset=["score", "score_without_tangent"])
            if not used.empty:
                found += _ablation(name, last, estimator, rank, used)
                break
    return found


def _ablation(run: str, site: str, estimator: str, rank: int, used: pd.DataFrame) -> list[Number]:
    told: dict[str, Any] = {"site": site, "n": int(used["n_nulls"].min()), "of": estimator, "rank": rank}
    normal = "score_without_normal"
    columns = {
        "isotropy": ("score", "score_lo", "score_hi"),
        "isotropy_without_tangent": ("score_without_tangent", "", ""),
        "isotropy_without_normal": (f"{normal}_mean", f"{normal}_lo", f"{normal}_hi"),
    }
    numbers = [
        Number(run, key, used[value].mean(), _limit(used, lo), _limit(used, hi), **told)
        for key, (value, lo, hi) in columns.items()
    ]
    return [*numbers, Number(run, "isotropy_p", used["p_value"].max(), **told)]


def _limit(rows: pd.DataFrame, column: str) -> float:
    return frames.mean_of_all(rows[column]) if column in rows else float("nan")


def cosine(table: pd.DataFrame, options: Options) -> list[Number]:
    """By run: mean cosine of activations at the last site, its peak over steps, first and last value."""
    del options
    rows = frames.pick(table, quantity="activation", metric="mean_cosine")
    found = []
    for name, run in _runs(rows):
        site = frames.sites_in_order(run)[-1]
        means = run[run["site"] == site].groupby(["step", "checkpoint"], as_index=False)
        series = means.agg(value=("value", "mean"), lo=("lo", frames.mean_of_all), hi=("hi", frames.mean_of_all))
        series = series.dropna(subset=["value"])
        if series.empty:
            continue
        at = series.sort_values("step")
        rows_of = {"cosine_peak": series.iloc[int(np.argmax(series["value"]))]}
        rows_of |= {"cosine_first": at.iloc[0], "cosine_last": at.iloc[-1]}
        found += [
            Number(name, key, row["value"], row["lo"], row["hi"], site=site, step=int(row["step"]))
            for key, row in rows_of.items()
        ]
    return found
