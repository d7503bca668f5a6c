"""How much of the variance or gradient energy lies in a basis, against random subspaces of the same rank.

Bernas et al. 2026 for the ratio and its matched-rank normals; exact Haar moments beside the draws are ours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy_interval import Resampled, resampled
from isotrace.geometry.nulls import haar_mean, haar_sd, haar_weights, p_value, root, variance_weighted_frames
from isotrace.geometry.rows import Bucket, Quantity

Array = NDArray[np.float64]
QUANTITIES: tuple[Quantity, ...] = ("activation", "gradient")
NOT_EXACT = "no exact moments for variance_weighted"
EMPTY = {"energy": np.nan, "energy_lo": np.nan, "energy_hi": np.nan, "enrichment": np.nan}
NO_NULL = dict.fromkeys(("null_mean", "null_mean_exact", "null_sd_exact", "ratio", "z", "p_value"), np.nan)


@dataclass(frozen=True)
class Null:
    """Energies of the drawn subspaces (B,), with the exact mean and sd where there are any (else NaN)."""

    draws: Array
    mean: float
    sd: float


@dataclass(frozen=True)
class Operator:
    """Rows (n, d), centred if they are to be, with G = sum x x^T / n, its trace and eigenvalues (d,)."""

    rows: Array
    sequence: NDArray[np.integer]
    centred: bool
    matrix: Array
    trace: float
    eigenvalues: Array


def energy_fraction(operator: Array, vectors: Array) -> float:
    """tr(Q^T G Q) / tr G for a symmetric G (d, d) and orthonormal Q (d, k); 0 to 1."""
    return float(np.einsum("dk,de,ek->", vectors, operator, vectors, optimize=True) / np.trace(operator))


def enrichment(energy: float, rank: int, d: int) -> float:
    """Energy over the share rank / d that an isotropic operator has; also the ratio to the ambient null."""
    return energy / (rank / d)


def complement_null(operator: Array, vectors: Array, draws: int, seed: int) -> Null:
    """Energies of Haar subspaces of rank k outside vectors (d, k), as fractions of tr G."""
    k = vectors.shape[1]
    inside = vectors @ (vectors.T @ operator)
    outside = operator - inside - inside.T + inside @ vectors @ vectors.T
    # Of P G P the k eigenvalues of the tangent are the smallest, zero up to rounding.
    values = np.clip(np.linalg.eigvalsh((outside + outside.T) / 2)[k:], 0, None) / np.trace(operator)
    return _haar_null(values, k, draws, seed)


def ambient_null(eigenvalues: Array, rank: int, draws: int, seed: int) -> Null:
    """Energies of Haar subspaces of rank k of the whole space; eigenvalues (d,) of G."""
    return _haar_null(eigenvalues / eigenvalues.sum(), rank, draws, seed)


def variance_weighted_null(operator: Array, frames: Array) -> Null:
    """Energies of given frames (B, d, k), as fractions of tr G; mean and sd are those of the draws."""
    count, d, k = frames.shape
    flat = frames.transpose(1, 0, 2).reshape(d, count * k)
    energies = np.einsum("dj,dj->j", flat, operator @ flat).reshape(count, k).sum(axis=1) / np.trace(operator)
    return Null(energies, np.nan, np.nan)


def _haar_null(values: Array, rank: int, draws: int, seed: int) -> Null:
    weights = haar_weights(values.size, rank, draws, seed)
    return Null(weights @ values, haar_mean(rank, values), haar_sd(rank, values))


def energy_table(
    bucket: Bucket, bases: Sequence[Basis], spec: Mapping[str, Any], *, variance: Mapping[str, Array]
) -> pd.DataFrame:
    """One row per site, quantity, basis, rank and null space of a bucket.

    Activations are always centred (energy of their variance), gradients as ``spec["centred"]`` says.
    variance[site] (d, d) is the covariance of evaluation activations that the variance-weighted null
    draws from; a site of one row has none. The ratio is to the exact mean of a Haar null, to the mean of
    the draws otherwise. energy_lo and energy_hi: percentile bootstrap over sequences. Columns without the
    keys that are joined later; see ``tables`` for units.
    """
    unknown = set(spec["null_spaces"]) - {"complement", "ambient", "variance_weighted"}
    if unknown:
        raise ConfigError(f"energy.null_spaces: {sorted(unknown)} are not complement, ambient or variance_weighted")
    rows: list[dict[str, Any]] = []
    for site in bucket.sites:
        listed = {quantity: _operator(bucket, site, quantity, spec) for quantity in QUANTITIES}
        bootstraps = {
            quantity: resampled(o.rows, o.sequence, [b.at(site, max(spec["ranks"])) for b in bases], o.centred, spec)
            for quantity, o in listed.items()
            if isinstance(o, Operator)
        }
        weighted = "variance_weighted" in spec["null_spaces"] and site in variance
        half = root(variance[site]) if weighted else np.zeros((0, 0))
        for index, basis in enumerate(bases):
            for rank in spec["ranks"]:
                rows += _cell(site, basis, index, rank, listed, bootstraps, half, spec)
    frame = pd.DataFrame(rows)
    frame.insert(1, "bucket", bucket.name)
    return frame


def _operator(bucket: Bucket, site: str, quantity: Quantity, spec: Mapping[str, Any]) -> Operator | tuple[int, str]:
    """The operator of one site and quantity, or how many rows there are and why that is not enough."""
    found = bucket.rows(site, quantity)
    if found.n < spec["min_rows"]:
        return found.n, f"{found.n} rows, fewer than min_rows {spec['min_rows']}"
    centred = quantity == "activation" or bool(spec["centred"])
    values = found.values - found.values.mean(axis=0) if centred else found.values
    rows = np.asarray(values, np.float64)
    matrix = rows.T @ rows / found.n
    trace = float(np.trace(matrix))
    if trace <= 0:
        return found.n, "the rows have no energy"
    eigenvalues = np.clip(np.linalg.eigvalsh(matrix), 0, None)
    return Operator(rows, found.sequence, centred, matrix, trace, eigenvalues)


def _cell(
    site: str,
    basis: Basis,
    index: int,
    rank: int,
    listed: Mapping[Quantity, Operator | tuple[int, str]],
    bootstraps: Mapping[Quantity, Resampled],
    half: Array,
    spec: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Rows of one site, basis and rank: both quantities share the variance-weighted draws."""
    vectors = basis.at(site, rank)
    missing = _invalid(vectors, rank)
    frames = None
    if "variance_weighted" in spec["null_spaces"] and not missing:
        frames = variance_weighted_frames(half, vectors, spec["draws"]["variance_weighted"], spec["seed"])
    rows = []
    for quantity, operator in listed.items():
        key = {"site": site, "quantity": quantity, "basis": basis.kind, "method": basis.method, "rank": rank}
        n = len(operator.rows) if isinstance(operator, Operator) else operator[0]
        reason = missing if isinstance(operator, Operator) else operator[1]
        if isinstance(operator, Operator) and not missing:
            found = _measured(operator, vectors, bootstraps[quantity], index, rank)
            nulls = [_null_columns(s, operator, vectors, frames, found["energy"], spec) for s in spec["null_spaces"]]
        else:
            found = EMPTY
            nulls = [{"null_space": s, **NO_NULL, "n_nulls": 0, "reason": reason} for s in spec["null_spaces"]]
        short = "" if reason or np.isfinite(found["energy_lo"]) else "no interval: all rows are from one sequence"
        for null in nulls:
            null["reason"] = "; ".join(r for r in (null["reason"], short) if r)
        rows += [{**key, "n_tokens": n, **found, **null} for null in nulls]
    return rows


def _invalid(vectors: Array, rank: int) -> str:
    """Why a basis cannot be used at this rank, or nothing."""
    d, have = vectors.shape
    valid = int(np.isfinite(vectors).all(axis=0).sum())
    if have < rank or valid < rank:
        return f"the basis has {valid} components, rank {rank} asked for"
    return f"rank {rank} leaves no complement of that rank in width {d}" if 2 * rank > d else ""


def _measured(operator: Operator, vectors: Array, bootstrap: Resampled, index: int, rank: int) -> dict[str, float]:
    energy = min(energy_fraction(operator.matrix, vectors), 1.0)
    lo, hi = bootstrap.interval(index, rank)
    return {
        "energy": energy,
        "energy_lo": lo,
        "energy_hi": hi,
        "enrichment": enrichment(energy, rank, vectors.shape[0]),
    }


def _null_columns(
    space: str, operator: Operator, vectors: Array, frames: Array | None, energy: float, spec: Mapping[str, Any]
) -> dict[str, Any]:
    """The columns that compare an energy with one null space."""
    rank, draws, seed = vectors.shape[1], spec["draws"][space], spec["seed"]
    if space == "variance_weighted" and frames is None:
        reason = f"activation variance outside the basis has fewer than {rank} dimensions"
        return {"null_space": space, **NO_NULL, "n_nulls": 0, "reason": reason}
    if space == "complement":
        null = complement_null(operator.matrix, vectors, draws, seed)
    elif space == "ambient":
        null = ambient_null(operator.eigenvalues, rank, draws, seed)
    else:
        assert frames is not None
        null = variance_weighted_null(operator.matrix, frames)
    exact = bool(np.isfinite(null.mean))
    mean = null.mean if exact else float(null.draws.mean())
    sd = null.sd if exact else float(null.draws.std(ddof=1))
    reason = "" if exact else NOT_EXACT
    # Rounding leaves some 1e-16 of an energy that is exactly nothing, and of a spread that is exactly none.
    empty, flat = mean < 1e-13, sd < 1e-12 * mean or mean < 1e-13
    if empty or flat:
        reason = "all energy lies in the basis" if empty else "the null has no spread"
    return {
        "null_space": space,
        "null_mean": float(null.draws.mean()),
        "null_mean_exact": null.mean,
        "null_sd_exact": null.sd,
        "ratio": np.nan if empty else energy / mean,
        "z": np.nan if flat else (energy - mean) / sd,
        "p_value": np.nan if flat and not empty else p_value(null.draws, energy),
        "n_nulls": draws,
        "reason": reason,
    }
