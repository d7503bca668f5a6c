"""Trend of a series over training: rank correlation with time and median slope.

Kendall 1938; Theil 1950 and Sen 1968; p-values by permuting blocks of checkpoints (our choice).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def _pairs(n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(n, k=1)


def kendall_tau(x: Float, y: Float) -> Float:
    """Kendall's tau-b of x (c,) with each row of y (..., c); NaN where either is constant or c < 3."""
    i, j = _pairs(len(x))
    if len(x) < 3:
        return np.full(y.shape[:-1], np.nan)
    dx, dy = np.sign(x[j] - x[i]), np.sign(y[..., j] - y[..., i])
    norm = np.sqrt(np.sum(dx != 0) * np.sum(dy != 0, axis=-1).astype(float))
    return np.asarray(np.divide(dy @ dx, norm, out=np.full(y.shape[:-1], np.nan), where=norm > 0))


def theil_sen_slope(x: Float, y: Float) -> Float:
    """Median of all pairwise slopes of each row of y (..., c) over x (c,); NaN for c < 3 or constant x."""
    i, j = _pairs(len(x))
    apart = x[j] != x[i]
    i, j = i[apart], j[apart]
    if len(x) < 3 or not len(i):
        return np.full(y.shape[:-1], np.nan)
    return np.asarray(np.median((y[..., j] - y[..., i]) / (x[j] - x[i]), axis=-1))


def block_length(n: int) -> int:
    """Length of the blocks that are permuted: the square root of the number of checkpoints, rounded up."""
    return int(np.ceil(np.sqrt(n)))


def shuffled_blocks(n: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """An order of n checkpoints in which blocks move as a whole, from a random start around the circle."""
    length = block_length(n)
    rolled = (np.arange(n) - int(rng.integers(n))) % n
    blocks = [rolled[k : k + length] for k in range(0, n, length)]
    return np.concatenate([blocks[k] for k in rng.permutation(len(blocks))])


def block_permutation_p(
    xs: Sequence[Float], ys: Sequence[Float], rng: np.random.Generator, *, draws: int
) -> tuple[float, float]:
    """Two-sided p-value, and the smallest attainable, of the mean over runs of Kendall's tau.

    Each run's series is permuted in blocks of its own, so that dependence between neighbouring checkpoints stays
    inside a block; xs, ys hold one (c,) array a run. With few checkpoints a series has few blocks, and strong
    dependence still makes this test reject too often: ``battery.trend`` asks the signed-rank test as well.
    """
    usable = [(x, y) for x, y in zip(xs, ys, strict=True) if np.isfinite(kendall_tau(x, y))]
    if not usable:
        return np.nan, np.nan
    observed = abs(np.mean([kendall_tau(x, y) for x, y in usable]))
    null = np.zeros(draws)
    for x, y in usable:
        orders = np.array([shuffled_blocks(len(x), rng) for _ in range(draws)])
        null += kendall_tau(x, y[orders])
    # A hair below the observed value, so that rounding never breaks a tie in favour of significance.
    reached = int(np.sum(np.abs(null / len(usable)) >= observed - 1e-12))
    return (1 + reached) / (1 + draws), 1 / (1 + draws)
