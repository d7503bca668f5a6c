"""Early against late: the difference within a run, and a paired test with runs as the unit.

Wilcoxon 1945; the smallest p-value that n runs can reach is reported beside each p-value.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]
MIN_RUNS = 5


@dataclass(frozen=True)
class RunTest:
    """Mean over runs, its bootstrap interval, the p-value, the smallest attainable p-value; NaN below five runs."""

    effect: float
    lo: float
    hi: float
    p_value: float
    p_min: float
    n: int


def early_minus_late(values: Float, phase: NDArray[np.str_]) -> Float:
    """Mean over early minus mean over late checkpoints; values (..., c), phase (c,); NaN when one phase is empty."""
    early, late = values[..., phase == "early"], values[..., phase == "late"]
    if early.shape[-1] == 0 or late.shape[-1] == 0:
        return np.full(values.shape[:-1], np.nan)
    return np.asarray(early.mean(axis=-1) - late.mean(axis=-1))


def across_runs(
    differences: ArrayLike, rng: np.random.Generator, *, resamples: int, confidence: float, sided: str = "two-sided"
) -> RunTest:
    """Signed-rank test that runs' differences (r,) are centred at zero; missing runs are left out.

    With fewer than five runs nothing below 2^(1-r) > 0.06 could come out, so that p and interval are NaN.
    """
    from scipy.stats import PermutationMethod, wilcoxon

    x = np.asarray(differences, dtype=np.float64)
    x = x[np.isfinite(x)]
    effect = float(x.mean()) if len(x) else np.nan
    if len(x) < MIN_RUNS:
        return RunTest(effect, np.nan, np.nan, np.nan, np.nan, len(x))
    moved = x[x != 0]
    p_min = min(1.0, (2.0 if sided == "two-sided" else 1.0) / 2.0 ** len(moved))
    tied = len(np.unique(np.abs(moved))) < len(moved)
    p_value = 1.0
    if len(moved):
        # Ties have no exact table: signs are flipped instead, all of them up to 13 runs.
        method = PermutationMethod(n_resamples=9999, rng=rng) if tied else "exact"
        p_value = float(wilcoxon(moved, alternative=sided, method=method).pvalue)
    means = x[rng.integers(len(x), size=(resamples, len(x)))].mean(axis=1)
    tail = (1 - confidence) / 2
    lo, hi = np.quantile(means, [tail, 1 - tail])
    return RunTest(effect, float(lo), float(hi), p_value, p_min, len(x))
