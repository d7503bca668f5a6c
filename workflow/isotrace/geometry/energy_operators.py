"""The operators whose energy is compared: second moments of rows, and of the rows of weight gradients.

G = sum x x^T / n (Bernas et al. 2026 for gradients); for a weight gradient W (d_out, d_in), W^T W / d_out is ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.energy_interval import Resampled, resampled
from isotrace.geometry.moments import Moments
from isotrace.geometry.rows import Bucket, Quantity

Array = NDArray[np.float64]
NO_INTERVAL = "no interval for weight gradients"


@dataclass(frozen=True)
class Operator:
    """A symmetric G (d, d) with its eigenvalues (d,), the n tokens behind it and the resamples for its interval."""

    n: int
    matrix: Array
    eigenvalues: Array
    bootstrap: Resampled


@dataclass(frozen=True)
class Absent:
    """How many tokens there are, and why no operator is made of them."""

    n: int
    reason: str


@dataclass(frozen=True)
class MapMoments:
    """One linear map in one bucket, evaluation split.

    gradient: moments of the d_out rows of its weight gradient; inputs: moments of what it read; tokens: how many
    tokens the gradient sums.
    """

    gradient: Moments
    inputs: Moments
    tokens: int


def row_operator(
    bucket: Bucket, site: str, quantity: Quantity, vectors: Sequence[Array], spec: Mapping[str, Any]
) -> Operator | Absent:
    """The operator of one site and quantity; vectors: the bases (d, K) whose energies are resampled.

    Activations are always centred (energy of their variance), gradients as ``spec["centred"]`` says.
    """
    found = bucket.rows(site, quantity)
    if found.n < spec["min_rows"]:
        return _too_few(found.n, spec)
    centred = quantity == "activation" or bool(spec["centred"])
    rows = np.asarray(found.values - found.values.mean(axis=0) if centred else found.values, np.float64)
    matrix = rows.T @ rows / found.n
    if np.trace(matrix) <= 0:
        return Absent(found.n, "the rows have no energy")
    return Operator(found.n, matrix, _eigenvalues(matrix), resampled(rows, found.sequence, vectors, centred, spec))


def weight_operator(found: MapMoments, spec: Mapping[str, Any]) -> Operator | Absent:
    """The operator of a weight gradient's rows, never centred: it is one sum over tokens, so it has no interval."""
    if found.tokens < spec["min_rows"]:
        return _too_few(found.tokens, spec)
    matrix = found.gradient.second_moment
    if np.trace(matrix) <= 0:
        return Absent(found.tokens, "the weight gradient is zero")
    bootstrap = Resampled((), float(spec["confidence"]), NO_INTERVAL)
    return Operator(found.tokens, matrix, _eigenvalues(matrix), bootstrap)


def _too_few(n: int, spec: Mapping[str, Any]) -> Absent:
    return Absent(n, f"{n} rows, fewer than min_rows {spec['min_rows']}")


def _eigenvalues(matrix: Array) -> Array:
    return np.clip(np.linalg.eigvalsh(matrix), 0, None)
