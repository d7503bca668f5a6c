"""The odds ratio of an energy, plain and with a direction, coordinates or a drawn subspace taken into account.

Matched-rank ratios as in Bernas et al. 2026; what is taken out of rows and basis alike is our choice.
"""

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.energy import energy_fraction, variance_weighted_null
from isotrace.geometry.energy_operators import NO_ENERGY
from isotrace.geometry.undefined import Undefined

Array = NDArray[np.float64]


def odds_ratio(energy: float, rank: int, d: int) -> float:
    """Energy of a rank-k subspace over the exact mean of Haar subspaces of what is outside it: E(d-k) / (k(1-E)).

    Undefined where no complement of that rank is left, or no energy is outside.
    """
    if 2 * rank > d:
        raise Undefined(f"rank {rank} leaves no complement of that rank in width {d}")
    outside = rank / (d - rank) * (1 - energy)
    if outside < 1e-13:
        raise Undefined("all energy lies in the basis")
    return energy / outside


def ratio(matrix: Array, vectors: Array) -> float:
    """The odds ratio of G (d, d) in orthonormal vectors (d, k)."""
    if np.trace(matrix) <= 0:
        raise Undefined(NO_ENERGY)
    return odds_ratio(energy_fraction(matrix, vectors), vectors.shape[1], vectors.shape[0])


def ratio_to_frames(matrix: Array, vectors: Array, frames: NDArray[np.floating] | None) -> float:
    """Energy in vectors (d, k) over the mean energy of the frames (B, d, k)."""
    if frames is None:
        raise Undefined(f"activation variance outside the basis has fewer than {vectors.shape[1]} dimensions")
    mean = float(variance_weighted_null(matrix, frames).draws.mean())
    if mean < 1e-13:
        raise Undefined("all energy lies in the basis")
    return energy_fraction(matrix, vectors) / mean


def ratio_without(matrix: Array, vectors: Array, direction: Array) -> float:
    """The odds ratio in the d - 1 dimensions outside a direction (d,), which rows and vectors (d, k) are projected to.

    The rank stays k unless the direction lies in the basis, which then loses one.
    """
    length = float(np.linalg.norm(direction))
    if length == 0:
        raise Undefined("the mean has no direction")
    unit = direction / length
    left = _orthonormal(vectors - np.outer(unit, unit @ vectors))
    total = float(np.trace(matrix) - unit @ matrix @ unit)
    if total <= 1e-13 * np.trace(matrix):
        raise Undefined("all energy lies along the mean")
    return odds_ratio(float(np.vdot(left, matrix @ left)) / total, left.shape[1], len(unit) - 1)


def ratio_dropping(matrix: Array, vectors: Array, dimensions: NDArray[np.intp]) -> float:
    """The odds ratio without some coordinates, dropped from rows and vectors (d, k)."""
    kept = np.setdiff1d(np.arange(len(vectors)), dimensions)
    return ratio(matrix[np.ix_(kept, kept)], _orthonormal(vectors[kept]))


def _orthonormal(vectors: Array) -> Array:
    """Orthonormal columns that span what is left of an orthonormal basis (d, k); directions that vanished are out."""
    left, lengths, _ = np.linalg.svd(vectors, full_matrices=False)
    kept: Array = left[:, lengths > 1e-6]
    if not kept.shape[1]:
        raise Undefined("nothing of the basis is left")
    return kept
