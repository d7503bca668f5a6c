"""Overlap of subspaces: principal angles, their mean squared cosine, and what unrelated subspaces would show.

Angles are those of Bjorck and Golub 1973; the Haar reference with its exact moments is our choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.nulls import haar_mean, haar_sd, haar_weights, p_value
from isotrace.geometry.subspaces import principal_angles
from isotrace.geometry.undefined import Undefined

Array = NDArray[np.float64]
MEASURES = ("overlap", "angle_min", "angle_max", "haar_mean", "haar_sd", "z", "p_value")


@dataclass(frozen=True)
class Overlap:
    """Mean squared cosine of the principal angles, those angles' ends in degrees, and the Haar reference.

    haar_mean, haar_sd are exact for a Haar subspace in place of one of the two; p_value is the share of ``n_nulls``
    draws that overlap at least as much, (1 + such draws) / (draws + 1).
    """

    overlap: float
    angle_min: float
    angle_max: float
    haar_mean: float
    haar_sd: float
    z: float
    p_value: float
    n_nulls: int


def subspace_overlap(a: Array, b: Array, *, draws: int, seed: int) -> Overlap:
    """Overlap of the column spaces of orthonormal a and b, both (d, k). Undefined where a column is NaN or k >= d."""
    return mean_overlap([a], b, draws=draws, seed=seed)


def mean_overlap(frames: Sequence[Array], basis: Array, *, draws: int, seed: int) -> Overlap:
    """The mean over p frames (d, k) of their overlaps with one basis (d, k); angles are means as well.

    A Haar basis has k/d in the mean, however alike the frames are among themselves; its spread depends on that.
    """
    d, k = basis.shape
    for found in (*frames, basis):
        determined = int(np.isfinite(found).all(axis=0).sum())
        if determined < k:
            raise Undefined(f"the data determine {determined} of {k} directions")
    if k >= d:
        raise Undefined(f"rank {k} fills all {d} dimensions")
    angles = _angles(frames, basis)
    overlap = float(np.mean(np.cos(angles) ** 2))
    shares = _projector_spectrum(frames)
    mean, sd = haar_mean(k, shares), haar_sd(k, shares)
    null = haar_weights(d, k, draws, seed) @ shares
    first, last = np.degrees(angles).mean(axis=0)[[0, -1]]
    z = (overlap - mean) / sd
    return Overlap(overlap, float(first), float(last), mean, sd, z, p_value(null, overlap), draws)


def _angles(frames: Sequence[Array], basis: Array) -> Array:
    """Principal angles (p, k) in radians, rising, of each frame and the basis."""
    if len(frames) == 1:
        return principal_angles(frames[0], basis)[None]
    # Of many frames from cosines alone, all at once: below 1e-6 degrees they say nothing, and no mean is so small.
    cosines = np.linalg.svd(np.stack(list(frames)).swapaxes(1, 2) @ basis, compute_uv=False)
    return np.asarray(np.arccos(np.clip(cosines, 0, 1)))


def _projector_spectrum(frames: Sequence[Array]) -> Array:
    """Eigenvalues (d,) of the mean projector onto p frames, over k: a basis's overlap is its energy under that."""
    d, k = frames[0].shape
    if len(frames) == 1:
        return np.concatenate([np.full(k, 1 / k), np.zeros(d - k)])
    side_by_side = np.concatenate(list(frames), axis=1)
    return np.asarray(np.linalg.eigvalsh(side_by_side @ side_by_side.T) / (len(frames) * k))
