"""How much rows point the same way: mean cosine (raw, centred, as an angle), norms and their drift.

Godey, de la Clergerie, Sagot 2024 (mean cosine, norm drift); Cer et al. 2018 (angular distance).
"""

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.undefined import Undefined
from isotrace.seeding import generator

Float = NDArray[np.float64]


def unit_rows(values: Float) -> Float:
    """The rows (n, d) scaled to length one; rows of length zero have no direction and are left out."""
    norms = np.linalg.norm(values, axis=1)
    kept = norms > 0
    if int(kept.sum()) < 2:
        raise Undefined("fewer than two rows of non-zero length")
    unit: Float = values[kept] / norms[kept, None]
    return unit


def mean_cosine(values: Float) -> float:
    """Mean cosine over all pairs of distinct rows of (n, d), in [-1, 1]; exact, in O(n d).

    (|sum of unit vectors|^2 - n) / (n (n - 1)). Raises Undefined below two non-zero rows.
    """
    unit = unit_rows(values)
    n = len(unit)
    total = unit.sum(axis=0)
    return float((total @ total - n) / (n * (n - 1)))


def mean_cosine_centred(values: Float) -> float:
    """Mean cosine of the rows (n, d) after their mean is subtracted; near -1/(n - 1) for a round cloud."""
    return mean_cosine(values - values.mean(axis=0))


def angular_distance(values: Float, *, max_rows: int, seed: int) -> float:
    """Mean angle between distinct rows of (n, d) in units of pi: 0 the same way, 0.5 orthogonal, 1 opposite.

    Over all pairs up to ``max_rows`` rows, beyond that over all pairs of a seeded subsample of that size.
    """
    unit = unit_rows(values)
    if len(unit) > max_rows:
        chosen = generator(seed, "angular_distance").choice(len(unit), size=max_rows, replace=False)
        unit = unit[np.sort(chosen)]
    n = len(unit)
    # each pair once: a row's angle with itself is rounding noise of 1e-8, not zero
    angles = np.arccos(np.clip((unit @ unit.T)[np.triu_indices(n, 1)], -1.0, 1.0))
    return float(angles.mean() / np.pi)


def mean_norm(values: Float) -> float:
    """Mean Euclidean length of the rows (n, d), in the rows' own units."""
    return float(np.linalg.norm(values, axis=1).mean())


def norm_drift(values: Float) -> float:
    """|mean row| / mean |row| of (n, d), in [0, 1]: 1 when all rows point the same way."""
    length = mean_norm(values)
    if length == 0:
        raise Undefined("every row is zero")
    return float(np.linalg.norm(values.mean(axis=0)) / length)


def max_over_median_norm(values: Float) -> float:
    """Longest row of (n, d) over the median length; large when one massive activation can decide a score."""
    norms = np.linalg.norm(values, axis=1)
    median = float(np.median(norms))
    if median == 0:
        raise Undefined("the median row is zero")
    return float(norms.max() / median)
