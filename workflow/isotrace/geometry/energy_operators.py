"""The operators whose energy is compared: second moments of rows kept or summed, and of weight gradients' rows.

G = sum x x^T / n (Bernas et al. 2026 for gradients); for a weight gradient W (d_out, d_in), W^T W / d_out is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.energy_interval import Replicates, Resampled, left_out, resampled
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.summed import BucketMoments, MapMoments

Array = NDArray[np.float64]
NO_INTERVAL = "no interval for weight gradients"
NO_ENERGY = "the rows have no energy"


@dataclass(frozen=True)
class Operator:
    """A symmetric G (d, d), the n tokens behind it and the replicates for its interval."""

    n: int
    matrix: Array
    replicates: Replicates

    @cached_property
    def eigenvalues(self) -> Array:
        """Rising eigenvalues (d,) of G, none below zero."""
        return np.clip(np.linalg.eigvalsh(self.matrix), 0, None)


@dataclass(frozen=True)
class Absent:
    """How many tokens there are, and why no operator is made of them."""

    n: int
    reason: str


def token_operator(
    bucket: Bucket | BucketMoments, site: str, quantity: Quantity, vectors: Sequence[Array], spec: Mapping[str, Any]
) -> Operator | Absent:
    """The operator of one site and quantity; vectors: the bases (d, K) whose energies get an interval.

    Activations are always centred (energy of their variance), gradients as ``spec["centred"]`` says.
    """
    centred = quantity == "activation" or bool(spec["centred"])
    if isinstance(bucket, BucketMoments):
        return _moment_operator(bucket, site, quantity, vectors, centred, spec)
    found = bucket.rows(site, quantity)
    if found.n < spec["min_rows"]:
        return _too_few(found.n, spec)
    rows = np.asarray(found.values - found.values.mean(axis=0) if centred else found.values, np.float64)
    matrix = rows.T @ rows / found.n
    if np.trace(matrix) <= 0:
        return Absent(found.n, NO_ENERGY)
    return Operator(found.n, matrix, resampled(rows, found.sequence, vectors, centred, spec))


def _moment_operator(
    bucket: BucketMoments,
    site: str,
    quantity: Quantity,
    vectors: Sequence[Array],
    centred: bool,
    spec: Mapping[str, Any],
) -> Operator | Absent:
    found = bucket.whole(site, quantity)
    if found.n < spec["min_rows"]:
        return _too_few(found.n, spec)
    matrix = found.scatter / found.n if centred else found.second_moment
    if np.trace(matrix) <= 0:
        return Absent(found.n, NO_ENERGY)
    replicates = left_out(found, bucket.groups(site, quantity), vectors, centred, spec)
    return Operator(found.n, matrix, replicates)


def weight_operator(found: MapMoments, spec: Mapping[str, Any]) -> Operator | Absent:
    """The operator of a weight gradient's rows, never centred: it is one sum over tokens, so it has no interval."""
    if found.tokens < spec["min_rows"]:
        return _too_few(found.tokens, spec)
    matrix = found.gradient.second_moment
    if np.trace(matrix) <= 0:
        return Absent(found.tokens, "the weight gradient is zero")
    return Operator(found.tokens, matrix, Resampled((), float(spec["confidence"]), NO_INTERVAL))


def _too_few(n: int, spec: Mapping[str, Any]) -> Absent:
    return Absent(n, f"{n} rows, fewer than min_rows {spec['min_rows']}")
