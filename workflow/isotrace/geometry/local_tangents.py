"""Local tangents: the leading directions of a point's neighbourhood, at seeded points of a cloud.

Neighbourhood PCA as in Zhang and Zha 2004 (local tangent space alignment); copies counted once are our choice.
"""

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.undefined import Undefined
from isotrace.seeding import generator

Array = NDArray[np.float64]
_CHUNK = 4_000_000
"""Numbers of neighbourhoods held at a time (32 MB)."""


def local_tangents(rows: NDArray[np.floating], *, neighbours: int, points: int, rank: int, seed: int) -> Array:
    """Orthonormal frames (p, d, rank) of the leading directions around p <= ``points`` rows of (n, d).

    A neighbourhood is a row and the ``neighbours`` nearest to it, centred at their mean. Equal rows count once: copies
    of one row are no neighbourhood. Directions that a neighbourhood does not determine are NaN columns, as are those
    that ``rank`` has beyond ``neighbours`` or d. Undefined where there are too few different rows.
    """
    distinct = np.unique(np.asarray(rows, np.float64), axis=0)
    n, d = distinct.shape
    if n <= neighbours:
        raise Undefined(f"{n} different rows, too few for neighbourhoods of {neighbours}")
    cloud = distinct - distinct.mean(axis=0)
    chosen = np.sort(generator(seed, "local_tangents").choice(n, size=min(points, n), replace=False))
    size = max(1, _CHUNK // ((neighbours + 1) * d))
    parts = [chosen[start : start + size] for start in range(0, len(chosen), size)]
    return np.concatenate([_leading(cloud[_nearest(cloud, part, neighbours)], rank) for part in parts])


def _nearest(cloud: Array, points: NDArray[np.intp], neighbours: int) -> NDArray[np.intp]:
    """Indices (p, neighbours + 1) of each point and its nearest rows, in no order."""
    square = np.einsum("nd,nd->n", cloud, cloud)
    distance = square - 2 * cloud[points] @ cloud.T  # squared, but for a constant of each point
    nearest: NDArray[np.intp] = np.argpartition(distance, neighbours, axis=1)[:, : neighbours + 1]
    return nearest


def _leading(hoods: Array, rank: int) -> Array:
    """Leading right singular vectors (p, d, rank) of centred neighbourhoods (p, m, d), NaN where undetermined."""
    centred = hoods - hoods.mean(axis=1, keepdims=True)
    _, values, transposed = np.linalg.svd(centred, full_matrices=False)
    found = transposed[:, :rank].swapaxes(1, 2).copy()
    floor = values[:, :1] * max(hoods.shape[1:]) * np.finfo(np.float64).eps
    undetermined = values[:, : found.shape[2]] <= np.maximum(floor, np.finfo(np.float64).tiny)
    found[np.broadcast_to(undetermined[:, None, :], found.shape)] = np.nan
    frames = np.full((*found.shape[:2], rank), np.nan)
    frames[:, :, : found.shape[2]] = found
    return frames
