"""Random subspaces of matched rank, their exact moments, and p-values against them.

The complement null is the matched-rank normal of Bernas et al. 2026; ambient and variance_weighted are our choice.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpstrf

from isotrace.errors import ConfigError
from isotrace.seeding import generator

Array = NDArray[np.float64]
Float = NDArray[np.floating]
CHUNK = 4_000_000
"""Numbers in one chunk of frames (32 MB): bounds memory, and fixes which draw is which."""
BLOCKS = 8
EPSILON = float(np.finfo(np.float64).eps)
KEPT = 18
"""Chunks that stay in memory for the next cloud: 999 draws of rank 32 in 2,048 dimensions."""


def haar_frames(m: int, k: int, draws: int, seed: int) -> Iterator[Array]:
    """Uniformly random orthonormal frames in R^m, in chunks of shape (b, m, k) that add up to ``draws``.

    The first b draws are the same whatever ``draws`` is. Draws depend on (m, k, seed) only, so that
    sites, buckets and checkpoints face the same null subspaces up to a rotation. ConfigError if k > m.
    """
    if not 0 < k <= m:
        raise ConfigError(f"a null of rank {k} does not fit in {m} dimensions: lower the rank")
    size = max(1, CHUNK // (m * k))
    for index, start in enumerate(range(0, draws, size)):
        yield _chunk(m, k, seed, index, min(size, draws - start))


@lru_cache(maxsize=KEPT)
def _chunk(m: int, k: int, seed: int, index: int, count: int) -> Array:
    """One chunk of frames; a Gaussian matrix's column space is Haar."""
    return _frozen(orthonormal(generator(seed, "haar", m, k, index).standard_normal((count, m, k))))


def haar_columns(m: int, k: int, draws: int, seed: int) -> Iterator[NDArray[np.float32]]:
    """The draws of ``haar_frames`` side by side in float32, (m, k * b): all first columns, then all second."""
    size = max(1, CHUNK // (m * k))
    for index, start in enumerate(range(0, draws, size)):
        yield _columns(m, k, seed, index, min(size, draws - start))


@lru_cache(maxsize=8)
def _columns(m: int, k: int, seed: int, index: int, count: int) -> NDArray[np.float32]:
    frames = _chunk(m, k, seed, index, count).transpose(1, 2, 0).reshape(m, k * count).astype(np.float32)
    frames.flags.writeable = False
    return frames


@lru_cache(maxsize=32)
def haar_weights(m: int, k: int, draws: int, seed: int) -> Array:
    """W (draws, m) with W[b, j] the squared length of axis j's image in draw b; rows sum to k.

    A Haar null's energy depends on the operator's eigenvalues alone: it is W @ eigenvalues.
    """
    return _frozen(np.concatenate([np.einsum("bmk,bmk->bm", f, f) for f in haar_frames(m, k, draws, seed)]))


@lru_cache(maxsize=4)
def _gaussians(d: int, k: int, seed: int, index: int, count: int) -> Array:
    """Standard normal (d, count * k), draw by draw: one chunk of the Z of the variance-weighted null."""
    return _frozen(generator(seed, "variance_weighted", d, k, index).standard_normal((count, k, d)).reshape(-1, d).T)


def orthonormal(stacks: Array) -> Array:
    """Orthonormal bases of the column spaces of (b, m, k).

    Two Cholesky factorisations of the Gram matrix do for tall Gaussian stacks what QR does, some three
    times faster; near-square ones are too ill-conditioned for that and take QR.
    """
    m, k = stacks.shape[-2:]
    if m < 4 * k:
        return np.asarray(np.linalg.qr(stacks)[0])
    lower = np.linalg.cholesky(np.matmul(stacks.swapaxes(-1, -2), stacks))
    return np.asarray(np.matmul(stacks, np.linalg.inv(lower).swapaxes(-1, -2)))


def root(covariance: Array) -> Array:
    """R (d, r) with R R^T the covariance, r its numerical rank: pivoted Cholesky, rows in their own order.

    Unlike eigenvectors its columns have no sign that a change in the last digits could flip.
    """
    d = len(covariance)
    lower, pivots, rank, _ = dpstrf(covariance, tol=float(covariance.diagonal().max()) * d * EPSILON, lower=1)
    half = np.zeros((d, rank))
    half[pivots - 1] = np.tril(lower)[:, :rank]
    return half


def _spread(half: Array, drawn: Array) -> Array:
    """R Z of a root (d, r) and normals (r, c), without most of the products with what is zero in R."""
    reach = half.shape[1] - (half[:, ::-1] != 0).argmax(axis=1)
    spread = np.empty((len(half), drawn.shape[1]))
    for rows in np.array_split(np.argsort(reach, kind="stable"), BLOCKS):
        end = int(reach[rows].max(initial=0))
        spread[rows] = half[rows, :end] @ drawn[:end]
    return spread


def variance_weighted_frames(half: Array, tangent: Array, draws: int, seed: int) -> Float | None:
    """Frames (draws, d, k) of orth(P R Z): random directions outside the tangent, weighted by variance.

    half R (d, r) from ``root``; tangent (d, k), P the projector off it. More than a chunk of numbers is kept in single
    precision. None if the variance outside the tangent has fewer than k dimensions: such a null does not exist.
    """
    d, k = tangent.shape
    if half.shape[1] < k:
        return None
    scale, size = float(np.linalg.norm(half)), max(1, CHUNK // (d * k))
    frames = np.empty((draws, d, k), np.float64 if draws <= size else np.float32)
    for index, start in enumerate(range(0, draws, size)):
        count = min(size, draws - start)
        spread = _spread(half, _gaussians(d, k, seed, index, count)[: half.shape[1]])
        spread -= tangent @ (tangent.T @ spread)
        found, upper = np.linalg.qr(spread.reshape(d, count, k).transpose(1, 0, 2))
        if np.abs(np.diagonal(upper, axis1=1, axis2=2)).min() <= 1e-9 * scale:
            return None
        # A second projection removes what cancellation left of the tangent.
        frames[start : start + count] = found - tangent @ (tangent.T @ found)
    return frames


def haar_mean(k: int, eigenvalues: Array) -> float:
    """Exact mean energy of a Haar k-subspace of R^m under an operator with these m eigenvalues."""
    return float(k / eigenvalues.size * eigenvalues.sum())


def haar_sd(k: int, eigenvalues: Array) -> float:
    """Exact standard deviation of the energy of a Haar k-subspace of R^m; 0 for k = m."""
    m = eigenvalues.size
    if m < 2:
        return 0.0
    spread = float(((eigenvalues - eigenvalues.mean()) ** 2).sum())
    return float(np.sqrt(2 * k * (m - k) / (m * (m - 1) * (m + 2)) * spread))


def p_value(null: Array, observed: float) -> float:
    """(1 + number of draws at or above the observed) / (B + 1), over a null of shape (B,).

    Draws that differ from the observed by rounding only are ties and count.
    """
    return float((1 + np.count_nonzero(null >= observed - 1e-12 * abs(observed))) / (null.size + 1))


def _frozen(array: Array) -> Array:
    """Cached arrays are shared, so nobody may write to them."""
    array.flags.writeable = False
    return array
