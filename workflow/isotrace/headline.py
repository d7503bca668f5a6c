"""The result in plain words: how strong, where and when, with an interval or a p-value and what it is conditional on.
Quantities of Bernas et al. 2026 (energy ratio, ablation) and Godey et al. 2024 (mean cosine); wording is ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from isotrace.figures import frames

Tables = Mapping[str, pd.DataFrame]


def headline(tables: Tables, *, rank: int | None = None, method: str = "pca") -> list[str]:
    """Leaks first, then lines on energy, ablation and cosine of each model, then the claims' verdicts.

    ``tables`` may lack any table; what it would have said is left out. ``rank``: 8 where it was computed, else the
    smallest. Energy intervals are over sequences within one run, combined as if checkpoints and buckets erred
    together; p-values are against random subspaces, given these data. Nothing here speaks for other runs.
    """
    options: dict[str, Any] = {"method": method} | ({"rank": rank} if rank is not None else {})
    lines = _leaks(tables["controls"]) if "controls" in tables else []
    if "energy" in tables:
        lines += _energy(tables["energy"], options)
    if "isotropy" in tables:
        lines += _isotropy(tables["isotropy"], options)
    if "geometry" in tables:
        lines += _cosine(tables["geometry"])
    if "claims" in tables:
        lines += _claims(tables["claims"])
    return lines


def _leaks(controls: pd.DataFrame) -> list[str]:
    """A warning for each model of which evaluation rows are fit rows too."""
    keys = ["model", "checkpoint", "bucket"]
    found = controls[controls["leaked"].fillna(0) > 0].groupby(keys, as_index=False)["leaked"].max()
    return [
        f"warning: {model}: evaluation rows that are fit rows too, up to {rows['leaked'].max()} in a bucket (in "
        f"{', '.join(frames.in_order(rows['bucket']))}; {rows['checkpoint'].nunique()} checkpoints): what is measured "
        f"there is not held out; see controls.csv."
        for model, rows in found.groupby("model")
    ]


def _runs(rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    """Each run by name; the seed is named only where a model has several."""
    seeds = rows.groupby("model")["seed"].nunique().to_dict()
    for (model, seed), run in rows.groupby(["model", "seed"], dropna=False):
        yield (f"{model} (seed {seed})" if seeds[model] > 1 else str(model)), run


def _energy(energy: pd.DataFrame, options: Mapping[str, Any]) -> list[str]:
    rows = frames.pick(
        energy, quantity="gradient", method=options["method"], null_space="complement", basis=frames.BASES
    )
    rank = frames.rank_of(rows, options)
    rows = frames.ratios(frames.pick(rows, rank=rank))
    lines = []
    for name, run in _runs(rows):
        means = frames.geometric_mean(run, ["basis", "site", "layer", "checkpoint", "step"])
        for basis, found in means.groupby("basis"):
            peak = found.iloc[int(np.argmax(found["ratio"]))]
            early = frames.geometric_mean(
                run[(run["phase"] == "early") & (run["site"] == peak["site"]) & (run["basis"] == basis)], ["site"]
            )
            text = (
                f"{name}: gradient energy in the tangent subspace (rank {rank}, {basis} basis) peaks at "
                f"{_span(peak)} times that of a matched normal subspace, at {peak['site']}, step {peak['step']}"
            )
            text += f"; {_span(early.iloc[0])} over early training there" if len(early) else ""
            lines.append(f"{text}. Geometric mean over token buckets; interval over sequences of this run.")
    return lines


def _span(row: pd.Series) -> str:
    limits = f" [{_number(row['lo'])}, {_number(row['hi'])}]" if np.isfinite([row["lo"], row["hi"]]).all() else ""
    return _number(row["ratio"]) + limits


def _number(value: float) -> str:
    """Three significant digits, without an exponent where a person would write none."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _isotropy(isotropy: pd.DataFrame, options: Mapping[str, Any]) -> list[str]:
    rows = frames.pick(
        isotropy,
        quantity="gradient",
        basis="fixed",
        method=options["method"],
        convention="complement",
        outliers="kept",
        null_space="complement",
    )
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    lines = []
    for name, run in _runs(rows):
        last = (frames.blocks(run) or frames.sites_in_order(run))[-1]
        late = frames.pick(run, site=last, phase="late")
        found = next((e for e in ("corrected", "plugin") if frames.pick(late, estimator=e)["score"].notna().any()), "")
        if not found:
            continue
        used = frames.pick(late, estimator=found).dropna(subset=["score", "score_without_tangent"])
        whole, tangent, normal = (
            used[c].mean() for c in ("score", "score_without_tangent", "score_without_normal_mean")
        )
        lines.append(
            f"{name}: late in training the isotropy of {last}'s gradients (IsoScore, {found}) is {_number(whole)}; "
            f"{_number(tangent)} without the tangent subspace, {_number(normal)} without a matched normal one. "
            f"Largest p over buckets and late checkpoints: {_number(used['p_value'].max())} "
            f"({int(used['n_nulls'].min())} random subspaces, given these data)."
        )
    return lines


def _cosine(geometry: pd.DataFrame) -> list[str]:
    rows = frames.pick(geometry, quantity="activation", metric="mean_cosine")
    lines = []
    for name, run in _runs(rows):
        last = frames.sites_in_order(run)[-1]
        means = run[run["site"] == last].groupby(["step", "checkpoint"], as_index=False)
        series = means.agg(value=("value", "mean"), lo=("lo", frames.mean_of_all), hi=("hi", frames.mean_of_all))
        series = series.dropna(subset=["value"])
        if series.empty:
            continue
        peak = series.iloc[int(np.argmax(series["value"]))]
        limits = (
            f" [{_number(peak['lo'])}, {_number(peak['hi'])}]" if np.isfinite([peak["lo"], peak["hi"]]).all() else ""
        )
        ends = "; ".join(_ends(series))
        lines.append(
            f"{name}: mean cosine of activations at {last} peaks at {_number(peak['value'])}{limits}, "
            f"step {int(peak['step'])}; {ends}. Mean over token buckets, within this run."
        )
    return lines


def _ends(series: pd.DataFrame) -> Sequence[str]:
    first, last = series.sort_values("step").iloc[0], series.sort_values("step").iloc[-1]
    start = "untrained" if first["step"] == 0 else f"step {int(first['step'])}"
    return [f"{start} {_number(first['value'])}", f"step {int(last['step'])} {_number(last['value'])}"]


def _claims(claims: pd.DataFrame) -> list[str]:
    if claims.empty:
        return []
    counts = claims["verdict"].value_counts()
    told = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("supported", "contradicted", "undecided"))
    return [f"declared claims: {told} (of {len(claims)}; see claims.csv)."]
