"""The result in plain words: how strong, where and when, with an interval or a p-value and what it is conditional on.
Quantities of Bernas et al. 2026 (energy ratio, ablation) and Godey et al. 2024 (mean cosine); wording is ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from isotrace.figures import frames
from isotrace.main_numbers import Number, main_numbers

Tables = Mapping[str, pd.DataFrame]


def headline(tables: Tables, *, rank: int | None = None, method: str = "pca") -> list[str]:
    """Leaks first, then lines on energy, ablation and cosine of each model, then the claims' verdicts.

    ``tables`` may lack any table; what it would have said is left out. ``rank``: 8 where it was computed, else the
    smallest. Energy intervals are over sequences within one run, combined as if checkpoints and buckets erred
    together; p-values are against random subspaces, given these data. Nothing here speaks for other runs.
    """
    lines = _leaks(tables["controls"]) if "controls" in tables else []
    numbers = main_numbers(tables, rank=rank, method=method)
    lines += [*_energy(numbers), *_isotropy(numbers), *_cosine(numbers)]
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


def _energy(numbers: Sequence[Number]) -> list[str]:
    lines = []
    for peak in (n for n in numbers if n.key == "energy_peak"):
        text = (
            f"{peak.run}: gradient energy in the tangent subspace (rank {peak.rank}, {peak.of} basis) peaks at "
            f"{_span(peak)} times that of a matched normal subspace, at {peak.site}, step {peak.step}"
        )
        early = [n for n in numbers if n.key == "energy_early" and (n.run, n.of) == (peak.run, peak.of)]
        text += "".join(f"; {_span(n)} over early training there" for n in early)
        lines.append(f"{text}. Geometric mean over token buckets; interval over sequences of this run.")
    return lines


def _span(number: Number) -> str:
    ends = [number.lo, number.hi]
    limits = f" [{_number(number.lo)}, {_number(number.hi)}]" if np.isfinite(ends).all() else ""
    return _number(number.value) + limits


def _number(value: float) -> str:
    """Three significant digits, without an exponent where a person would write none."""
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def _isotropy(numbers: Sequence[Number]) -> list[str]:
    return [
        f"{run}: late in training the isotropy of {found['isotropy'].site}'s gradients (IsoScore, "
        f"{found['isotropy'].of}) is {_number(found['isotropy'].value)}; "
        f"{_number(found['isotropy_without_tangent'].value)} without the tangent subspace, "
        f"{_number(found['isotropy_without_normal'].value)} without a matched normal one. "
        f"Largest p over buckets and late checkpoints: {_number(found['isotropy_p'].value)} "
        f"({found['isotropy_p'].n} random subspaces, given these data)."
        for run, found in _by_run(numbers, "isotropy").items()
    ]


def _cosine(numbers: Sequence[Number]) -> list[str]:
    lines = []
    for run, found in _by_run(numbers, "cosine").items():
        peak, first, last = found["cosine_peak"], found["cosine_first"], found["cosine_last"]
        start = "untrained" if first.step == 0 else f"step {first.step}"
        lines.append(
            f"{run}: mean cosine of activations at {peak.site} peaks at {_span(peak)}, step {peak.step}; {start} "
            f"{_number(first.value)}; step {last.step} {_number(last.value)}. Mean over token buckets, within this run."
        )
    return lines


def _by_run(numbers: Sequence[Number], start: str) -> dict[str, dict[str, Number]]:
    found: dict[str, dict[str, Number]] = {}
    for number in numbers:
        if number.key.startswith(start):
            found.setdefault(number.run, {})[number.key] = number
    return found


def _claims(claims: pd.DataFrame) -> list[str]:
    if claims.empty:
        return []
    counts = claims["verdict"].value_counts()
    told = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("supported", "contradicted", "undecided"))
    return [f"declared claims: {told} (of {len(claims)}; see claims.csv)."]
