"""The tangent proxy: an orthonormal basis of rank k from pooled moments of activations.

PCA of early checkpoints is Bernas et al. 2026; pooling switches and control methods are our choice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import ConfigError, DataError
from isotrace.geometry.moments import Moments
from isotrace.geometry.nulls import root
from isotrace.geometry.semi_nmf import semi_nmf
from isotrace.seeding import generator

Array = NDArray[np.float64]
Center = Literal["global", "checkpoint"]
Scale = Literal["none", "trace"]


@dataclass(frozen=True)
class Pooled:
    """Moments of a mixture in which every checkpoint, and in it every bucket, weighs the same.

    n rows behind it; mean (d,); covariance (d, d) under the chosen centring; second_moment (d, d), uncentred.
    """

    n: int
    mean: Array
    covariance: Array
    second_moment: Array


Fit = Callable[[Pooled, int, int, Array | None], Array]
METHODS: dict[str, Fit] = {}


def basis_method(name: str) -> Callable[[Fit], Fit]:
    """Register ``fit(pooled, rank, seed, rows) -> vectors (d, <= rank)``, orthonormal, under a config name."""

    def register(fit: Fit) -> Fit:
        METHODS[name] = fit
        return fit

    return register


def pool(checkpoints: Sequence[Sequence[Moments]], center: Center = "global", scale: Scale = "none") -> Pooled:
    """Pool the moments of each checkpoint's buckets.

    center ``global`` keeps the movement of the mean between checkpoints in the covariance, ``checkpoint``
    takes it out; scale ``trace`` first divides each checkpoint's rows by the root of its total variance.
    DataError where there is nothing to pool.
    """
    if not checkpoints or any(not buckets for buckets in checkpoints):
        raise DataError("pooling needs at least one bucket of one checkpoint")
    mixtures = [_mixture(buckets) for buckets in checkpoints]
    units = [1.0 if scale == "none" else 1 / np.sqrt(_total(c)) for _, c in mixtures]
    means = np.stack([u * m for u, (m, _) in zip(units, mixtures, strict=True)])
    within = np.mean([u**2 * c for u, (_, c) in zip(units, mixtures, strict=True)], axis=0)
    mean = means.mean(axis=0)
    between = (means - mean).T @ (means - mean) / len(means)
    covariance = within + between if center == "global" else within
    n = sum(m.n for buckets in checkpoints for m in buckets)
    return Pooled(n, mean, covariance, within + between + np.outer(mean, mean))


def _mixture(buckets: Sequence[Moments]) -> tuple[Array, Array]:
    """Mean (d,) and covariance (d, d) of equally weighted buckets."""
    if any(m.n == 0 for m in buckets):
        raise DataError("a bucket without rows cannot be pooled")
    means = np.stack([m.mean for m in buckets])
    mean = means.mean(axis=0)
    within = np.mean([m.scatter / m.n for m in buckets], axis=0)
    return mean, within + (means - mean).T @ (means - mean) / len(means)


def _total(covariance: Array) -> float:
    trace = float(np.trace(covariance))
    if trace <= 0:
        raise DataError("a checkpoint whose activations do not vary cannot be scaled to unit trace")
    return trace


def fit_basis(method: str, pooled: Pooled, rank: int, *, seed: int, rows: Array | None = None) -> tuple[Array, Array]:
    """Orthonormal vectors (d, rank) and the pooled variance along each (rank,).

    Components that the data do not determine are NaN columns at the end. Each column's largest entry is
    positive. rows (n, d), centred, are read by ``semi_nmf`` only. ConfigError for an unknown method or rank.
    """
    d = pooled.mean.size
    if method not in METHODS:
        raise ConfigError(f"bases.methods: {method!r} is not one of {', '.join(sorted(METHODS))}")
    if not 0 < rank <= d:
        raise ConfigError(f"bases.rank: {rank} is not between 1 and the width {d}")
    found = METHODS[method](pooled, rank, seed, rows)
    largest = found[np.abs(found).argmax(axis=0), np.arange(found.shape[1])]
    found = found * np.where(largest < 0, -1.0, 1.0)
    vectors = np.full((d, rank), np.nan)
    vectors[:, : found.shape[1]] = found
    operator = pooled.second_moment if method == "svd" else pooled.covariance
    return vectors, np.einsum("dk,de,ek->k", vectors, operator, vectors, optimize=True)


@basis_method("pca")
def _pca(pooled: Pooled, rank: int, seed: int, rows: Array | None) -> Array:
    """Leading eigenvectors of the covariance."""
    return leading(pooled.covariance, rank)


@basis_method("svd")
def _svd(pooled: Pooled, rank: int, seed: int, rows: Array | None) -> Array:
    """Leading right singular vectors of the uncentred rows."""
    return leading(pooled.second_moment, rank)


@basis_method("semi_nmf")
def _semi_nmf(pooled: Pooled, rank: int, seed: int, rows: Array | None) -> Array:
    """Span of the concepts of X ~ Z D, turned so that its components have falling variance."""
    if rows is None:
        raise DataError("bases.methods: semi_nmf needs the rows themselves, moments are not enough")
    span = np.linalg.qr(semi_nmf(rows, rank, seed=seed).concepts.T)[0]
    return np.asarray(np.linalg.qr(span @ leading(span.T @ pooled.covariance @ span, rank))[0])


@basis_method("variance_weighted")
def _variance_weighted(pooled: Pooled, rank: int, seed: int, rows: Array | None) -> Array:
    """Control: orth(C^1/2 Z), directions at random in proportion to the variance. Not sorted."""
    half = root(pooled.covariance)
    keep = min(rank, half.shape[1])
    noise = generator(seed, "basis", "variance_weighted").standard_normal((half.shape[1], keep))
    return np.asarray(np.linalg.qr(half @ noise)[0])


@basis_method("random")
def _random(pooled: Pooled, rank: int, seed: int, rows: Array | None) -> Array:
    """Control: a Haar subspace. Not sorted, so that its first components are a random subspace too."""
    return np.asarray(np.linalg.qr(generator(seed, "basis", "random").standard_normal((pooled.mean.size, rank)))[0])


def leading(operator: Array, rank: int) -> Array:
    """Eigenvectors (d, <= rank) of a symmetric operator by falling eigenvalue, zero eigenvalues left out."""
    values, vectors = np.linalg.eigh(operator)
    values, vectors = values[::-1][:rank], vectors[:, ::-1][:, :rank]
    floor = values[0] * operator.shape[0] * np.finfo(np.float64).eps
    return np.asarray(vectors[:, values > max(floor, 0.0)])


def principal_angles(a: Array, b: Array) -> Array:
    """Angles in radians, rising, between the column spaces of orthonormal a (d, k) and b (d, l); (min(k, l),).

    Small angles from sines and large ones from cosines, so that both ends are exact.
    """
    small, large = (a, b) if a.shape[1] <= b.shape[1] else (b, a)
    cosines = np.clip(np.linalg.svd(large.T @ small, compute_uv=False), 0, 1)
    sines = np.clip(np.linalg.svd(small - large @ (large.T @ small), compute_uv=False)[::-1], 0, 1)
    return np.asarray(np.where(cosines**2 > 0.5, np.arcsin(sines), np.arccos(cosines)))
