"""Semi-nonnegative factorisation X ~ Z D, Z >= 0 and D free: parts of rows that only add up.

Ding, Li and Jordan 2010, "Convex and semi-nonnegative matrix factorizations", updates of their equations 10 and 11.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.seeding import generator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SemiNMF:
    """Loadings (n, k) >= 0, concepts (k, d), and the squared error after each iteration, which never rises."""

    loadings: Array
    concepts: Array
    objective: Array


def semi_nmf(rows: Array, rank: int, *, seed: int, iterations: int = 200, tolerance: float = 1e-6) -> SemiNMF:
    """Factorise rows (n, d) with ``rank`` concepts, from a k-means start.

    Stops when an iteration lowers the error by less than ``tolerance`` of itself. DataError for
    fewer than rank + 1 distinct rows.
    """
    if np.unique(rows, axis=0).shape[0] <= rank:
        raise DataError(f"semi_nmf of rank {rank} needs more than {rank} distinct rows")
    z = np.eye(rank)[_k_means(rows, rank, seed)] + 0.2
    total = float(np.einsum("ij,ij->", rows, rows))
    concepts, errors = _concepts(rows, z), [np.inf]
    for _ in range(iterations):
        z = z * np.sqrt(_ratio(rows @ concepts.T, concepts @ concepts.T, z))
        concepts = _concepts(rows, z)
        gram = concepts @ concepts.T
        error = total - 2 * float(np.sum(z * (rows @ concepts.T))) + float(np.sum((z.T @ z) * gram))
        errors.append(max(error, 0.0))
        if errors[-2] - errors[-1] <= tolerance * errors[-1]:
            break
    return SemiNMF(z, concepts, np.asarray(errors[1:]))


def _concepts(rows: Array, z: Array) -> Array:
    """The least-squares concepts for given loadings; pinv copes with a concept that died out."""
    return np.asarray(np.linalg.pinv(z.T @ z, hermitian=True) @ (z.T @ rows))


def _ratio(cross: Array, gram: Array, z: Array) -> Array:
    """The multiplicative step before its square root; a floor at rounding level keeps division by zero away."""
    above = np.maximum(cross, 0) + z @ np.maximum(-gram, 0)
    below = np.maximum(-cross, 0) + z @ np.maximum(gram, 0)
    floor = np.finfo(np.float64).eps * max(float(np.abs(cross).max()), np.finfo(np.float64).tiny)
    return np.asarray((above + floor) / (below + floor))


def _k_means(rows: Array, k: int, seed: int, iterations: int = 50) -> NDArray[np.intp]:
    """Labels (n,) of Lloyd's algorithm from a k-means++ start."""
    rng = generator(seed, "k_means", k)
    centres = rows[[int(rng.integers(len(rows)))]]
    for _ in range(1, k):
        nearest = _distances(rows, centres).min(axis=1)
        pick = np.searchsorted(np.cumsum(nearest), rng.random() * nearest.sum(), side="right")
        centres = np.vstack([centres, rows[min(int(pick), len(rows) - 1)]])
    labels = _distances(rows, centres).argmin(axis=1)
    for _ in range(iterations):
        member = np.eye(k)[labels]
        size = member.sum(axis=0)
        centres = np.where(size[:, None] > 0, (member.T @ rows) / np.maximum(size, 1)[:, None], centres)
        moved = _distances(rows, centres).argmin(axis=1)
        if np.array_equal(moved, labels):
            break
        labels = moved
    return np.asarray(labels, np.intp)


def _distances(rows: Array, centres: Array) -> Array:
    """Squared distances (n, k), never below zero."""
    square = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.maximum(square - 2 * rows @ centres.T, 0.0))
