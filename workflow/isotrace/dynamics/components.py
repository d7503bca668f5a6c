"""How much a finished study's series vary: between runs, over checkpoints, between cells, by sampling of tokens.

Method of moments on residuals from each run's line over log10(1+step); AR(1) bias as in Kendall 1954.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.dynamics.contrasts import MIN_RUNS, early_minus_late
from isotrace.dynamics.measures import MEASURES, cells
from isotrace.dynamics.series import Series, build, run_means
from isotrace.dynamics.simulate import REFERENCE_TOKENS, Variation, ar1
from isotrace.errors import DataError
from isotrace.seeding import generator

Float = NDArray[np.float64]
MOST_DEPENDENT = 0.95


def _off_line(series: Series) -> Float:
    """Residuals of a straight line over x, scaled for the two numbers that the line took."""
    line = np.polynomial.Polynomial.fit(series.x, series.value, 1)
    c = len(series.value)
    return np.asarray((series.value - line(series.x)) * np.sqrt(c / (c - 2)))


def autocorrelation(residuals: Sequence[Float]) -> float:
    """Lag-one correlation pooled over runs; (1 + 4 rho)/c is added, which a fitted line takes away on average."""
    inside = sum(float(np.sum(r[1:] * r[:-1])) for r in residuals)
    plain = inside / sum(float(np.sum(r**2)) for r in residuals)
    c = float(np.mean([len(r) for r in residuals]))
    return float(np.clip((plain * c + 1) / (c - 4), 0, MOST_DEPENDENT))


def _contrast_error(runs: Sequence[Series], variation: Variation) -> float:
    """Variance of early minus late that the course within a run alone makes, by simulation."""
    rng = generator(0, "power", "contrast")
    drawn = [
        early_minus_late(ar1(rng, (2000, len(r.step)), variation.autocorrelation), r.phase).var()
        for r in runs
        if {"early", "late"} <= set(r.phase.tolist())
    ]
    return variation.within_run**2 * float(np.mean(drawn)) if drawn else np.nan


def components(table: pd.DataFrame, *, rank: int, method: str, confidence: float) -> tuple[Variation, list[str]]:
    """Variation of gradient energy ratios (fixed basis) in a study's table ``energy``, and what had to be supposed.

    DataError where the table has no such rows, or no model with the five checkpoints that a course needs.
    """
    from scipy.special import ndtri

    where = {"quantity": ("gradient",), "basis": ("fixed",), "null_space": ("complement",)}
    found = cells("energy.ratio", {"energy": table}, where, {"rank": rank, "method": method})
    if found.empty:
        known = sorted(set(table["rank"].dropna().astype(int)))
        raise DataError(f"power --results: no gradient energies of rank {rank}, {method}; ranks there: {known}")
    series = build(found, MEASURES["energy.ratio"])
    runs = [r for r in run_means(series) if len(r.step) > 4]
    if not runs:
        raise DataError("power --results: no model has five checkpoints with energies; the course needs them")
    residuals = [_off_line(r) for r in runs]
    apart = [s.value - r.value for r in runs for s in series if s.model == r.model and len(s.step) == len(r.step)]
    width = np.concatenate([s.hi - s.lo for s in series]) / (2 * ndtri(0.5 + confidence / 2))
    tokens = table.loc[table["quantity"] == "gradient", "n_tokens"].dropna().astype(float)
    measured = Variation(
        within_run=float(np.sqrt(np.mean(np.concatenate(residuals) ** 2))),
        cells=float(np.sqrt(np.mean([np.var(a, ddof=1) for a in apart]))),
        autocorrelation=autocorrelation(residuals),
        sampling=float(np.sqrt(np.nanmean(width**2) * tokens.mean() / REFERENCE_TOKENS)),
    )
    return _with_runs(measured, runs)


def _with_runs(measured: Variation, runs: Sequence[Series]) -> tuple[Variation, list[str]]:
    """The measured variation with that between runs, where the study has runs enough to tell it."""
    contrasts = np.array([float(early_minus_late(r.value, r.phase)) for r in runs])
    contrasts = contrasts[np.isfinite(contrasts)]
    if len(contrasts) < MIN_RUNS:
        few = f"{len(contrasts)} of the {MIN_RUNS} runs that could tell it"
        return measured, [f"between runs {measured.between_runs} is supposed: {few}"]
    between = max(0.0, float(np.var(contrasts, ddof=1)) - _contrast_error(runs, measured))
    note = f"between runs is of {len(contrasts)} models, whatever sets them apart"
    return replace(measured, between_runs=float(np.sqrt(between))), [note]
