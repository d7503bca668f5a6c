"""Runs that do not exist: series over training with a planted effect and stated sources of variation.

A stationary AR(1) course of each run and of each cell, over a run's own effect (our choice).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.dynamics.series import Series

Float = NDArray[np.float64]
REFERENCE_TOKENS = 640
EARLY, LATE = 0.3, 0.7


@dataclass(frozen=True)
class Design:
    """How much is measured: runs, checkpoints evenly over training, sites, buckets, tokens a bucket."""

    runs: int
    checkpoints: int
    sites: int
    tokens: int
    buckets: int = 4


@dataclass(frozen=True)
class Variation:
    """Standard deviations, in units of the series (natural logs of a ratio).

    between_runs is of the runs' own effects; within_run and cells of AR(1) courses with ``autocorrelation`` between
    neighbouring checkpoints, of the whole run and of one cell (site and bucket); sampling is the error of one cell
    at ``REFERENCE_TOKENS`` tokens.
    """

    between_runs: float = 0.3
    within_run: float = 0.4
    cells: float = 0.45
    autocorrelation: float = 0.5
    sampling: float = 0.07


def ar1(rng: np.random.Generator, shape: tuple[int, ...], autocorrelation: float) -> Float:
    """Stationary AR(1) along the last axis, variance 1."""
    course = rng.standard_normal(shape)
    for t in range(1, shape[-1]):
        course[..., t] *= np.sqrt(1 - autocorrelation**2)
        course[..., t] += autocorrelation * course[..., t - 1]
    return course


def phases(progress: Float) -> NDArray[np.str_]:
    """early | mid | late at each share of training, limits included."""
    return np.where(progress <= EARLY, "early", np.where(progress >= LATE, "late", "mid"))


def over_time(progress: Float) -> Float:
    """1/2 early, -1/2 late, straight between: an effect of one from early to late."""
    return np.interp(progress, [EARLY, LATE], [0.5, -0.5])


def over_buckets(buckets: int) -> Float:
    """1/2 of the most frequent to -1/2 of the rarest bucket, evenly."""
    return np.linspace(0.5, -0.5, buckets)


def simulated(
    design: Design, variation: Variation, effect: float, rng: np.random.Generator, *, ordered: bool
) -> list[Series]:
    """One series a run and bucket, the mean over sites, with ``effect`` along buckets (ordered) or along training.

    Tests across runs read means over sites, so that sites are averaged here: their own courses average out, the run's
    does not, nor does the sampling error, which sites share because they read the same tokens.
    """
    runs, buckets, c = design.runs, design.buckets, design.checkpoints
    progress = np.linspace(0, 1, c)
    shape = over_buckets(buckets)[:, None] if ordered else over_time(progress)[None]
    own = effect + variation.between_runs * rng.standard_normal((runs, 1, 1))
    value = own * shape + variation.within_run * ar1(rng, (runs, 1, c), variation.autocorrelation)
    value = value + variation.cells / np.sqrt(design.sites) * ar1(rng, (runs, buckets, c), variation.autocorrelation)
    error = variation.sampling * np.sqrt(REFERENCE_TOKENS / design.tokens)
    value = value + error * rng.standard_normal((runs, buckets, c))
    step, phase, none = np.round(1000 * progress).astype(int), phases(progress), np.full(c, np.nan)
    return [
        Series(f"run{r}", "all", f"b{b}", step, phase, value[r, b], none, none)
        for r in range(runs)
        for b in range(buckets)
    ]
