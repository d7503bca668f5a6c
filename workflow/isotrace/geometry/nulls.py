"""Random subspaces of matched rank, their exact moments, and p-values against them.

The complement null is the matched-rank normal of Bernas et al. 2026; ambient and variance_weighted are our choice.
"""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.seeding import generator

Array = NDArray[np.float64]
CHUNK = 4_000_000
"""Numbers in one chunk of frames (32 MB): bounds memory, and fixes which draw is which."""


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


@lru_cache(maxsize=8)
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


@lru_cache(maxsize=8)
def gaussians(d: int, k: int, draws: int, seed: int) -> Array:
    """Standard normal (d, draws * k), draw by draw: the Z of the variance-weighted null."""
    return _frozen(generator(seed, "variance_weighted", d, k).standard_normal((d, draws * k)))


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
    """R (d, r) with R R^T the covariance, r its numerical rank; the largest entry of a column is positive.

    Without that a change in the last digits may flip a column, and with it every subspace drawn from R.
    """
    values, vectors = np.linalg.eigh(covariance)
    keep = values > values[-1] * values.size * np.finfo(np.float64).eps
    columns = vectors[:, keep] * np.sqrt(values[keep])
    largest = np.abs(columns).argmax(axis=0)
    return np.asarray(columns * np.sign(columns[largest, np.arange(columns.shape[1])]))


def variance_weighted_frames(half: Array, tangent: Array, draws: int, seed: int) -> Array | None:
    """Frames (draws, d, k) of orth(P R Z): random directions outside the tangent, weighted by variance.

    half R (d, r) from ``root``; tangent (d, k), P the projector off it. None if the variance outside the
    tangent has fewer than k dimensions: such a null does not exist.
    """
    d, k = tangent.shape
    if half.shape[1] < k:
        return None
    spread = half @ gaussians(d, k, draws, seed)[: half.shape[1]]
    outside = spread - tangent @ (tangent.T @ spread)
    stacks = outside.reshape(d, draws, k).transpose(1, 0, 2)
    frames, upper = np.linalg.qr(stacks)
    pivots = np.abs(np.diagonal(upper, axis1=1, axis2=2))
    scale = np.sqrt(np.einsum("dj,dj->j", spread, spread).reshape(draws, k).max(axis=1))
    if bool(np.any(pivots.min(axis=1) <= 1e-9 * scale)):
        return None
    # A second projection removes what cancellation left of the tangent.
    return np.asarray(frames - tangent @ (tangent.T @ frames))


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
