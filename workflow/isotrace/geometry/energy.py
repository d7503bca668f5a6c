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
from isotrace.geometry.energy_operators import Absent, Operator, token_operator, weight_operator
from isotrace.geometry.nulls import haar_mean, haar_sd, haar_weights, p_value, root, variance_weighted_frames
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.summed import BucketMoments, MapMoments

Array = NDArray[np.float64]
Float = NDArray[np.floating]
AT_ONCE, BLOCKS = 64, 8
"""Frames in one product, which bounds memory, and blocks of an operator's rows."""
QUANTITIES: tuple[Quantity, ...] = ("activation", "gradient")
NOT_EXACT = "no exact moments for variance_weighted"
NO_ENERGY = "no interval: a resample has no energy"
EMPTY = {"energy": np.nan, "energy_lo": np.nan, "energy_hi": np.nan, "enrichment": np.nan}
NO_NULL = dict.fromkeys(("null_mean", "null_mean_exact", "null_sd_exact", "ratio", "z", "p_value"), np.nan)


@dataclass(frozen=True)
class Null:
    """Energies of the drawn subspaces (B,), with the exact mean and sd where there are any (else NaN)."""

    draws: Array
    mean: float
    sd: float


def energy_fraction(operator: Array, vectors: Array) -> float:
    """tr(Q^T G Q) / tr G for a symmetric G (d, d) and orthonormal Q (d, k); 0 to 1."""
    return float(np.einsum("dk,de,ek->", vectors, operator, vectors, optimize=True) / np.trace(operator))


def enrichment(energy: float, rank: int, d: int) -> float:
    """Energy over the share rank / d that an isotropic operator has; also the ratio to the ambient null."""
    return energy / (rank / d)


def complement_null(operator: Array, vectors: Array, draws: int, seed: int) -> Null:
    """Energies of Haar subspaces of rank k outside vectors (d, k), as fractions of tr G."""
    k = vectors.shape[1]
    across = vectors.T @ operator
    half = vectors @ (across - (across @ vectors) @ vectors.T / 2)
    # Of P G P = G - A - A^T the k eigenvalues of the tangent are the smallest, zero up to rounding.
    values = np.clip(np.linalg.eigvalsh(operator - (half + half.T))[k:], 0, None) / np.trace(operator)
    return _haar_null(values, k, draws, seed)


def ambient_null(eigenvalues: Array, rank: int, draws: int, seed: int) -> Null:
    """Energies of Haar subspaces of rank k of the whole space; eigenvalues (d,) of G."""
    return _haar_null(eigenvalues / eigenvalues.sum(), rank, draws, seed)


def variance_weighted_null(operator: Array, frames: Float) -> Null:
    """Energies of given frames (B, d, k), as fractions of tr G, in their precision; mean and sd of the draws."""
    # q^T G q is twice q^T L q, L the lower triangle with half the diagonal: of blocks of rows only what is left of it.
    lower = (2 * np.tril(operator) - np.diag(operator.diagonal())) / np.trace(operator)
    blocks = np.array_split(lower.astype(frames.dtype), BLOCKS)
    ends = np.cumsum([len(block) for block in blocks])
    energies = []
    for part in np.array_split(frames, -(-len(frames) // AT_ONCE)):
        flat = part.transpose(1, 0, 2).reshape(len(operator), -1)
        found = np.zeros(flat.shape[1])
        for block, end in zip(blocks, ends, strict=True):
            found += np.einsum("dj,dj->j", flat[end - len(block) : end], block[:, :end] @ flat[:end])
        energies.append(found.reshape(len(part), -1).sum(axis=1))
    return Null(np.concatenate(energies), np.nan, np.nan)


def _haar_null(values: Array, rank: int, draws: int, seed: int) -> Null:
    weights = haar_weights(values.size, rank, draws, seed)
    return Null(weights @ values, haar_mean(rank, values), haar_sd(rank, values))


def energy_table(
    bucket: Bucket | BucketMoments,
    bases: Sequence[Basis],
    spec: Mapping[str, Any],
    *,
    variance: Mapping[str, Array],
    weights: Mapping[str, MapMoments] | None = None,
) -> pd.DataFrame:
    """One row per site, quantity, basis, rank and null space of a bucket.

    variance[site] (d, d) is the covariance of evaluation activations that the variance-weighted null draws from;
    a site of one row has none. weights["block.0:NAME"] adds the quantity weight_gradient:NAME at that block. A
    basis is used for the sites and maps that it has. The ratio is to the exact mean of a Haar null, to the mean
    of the draws otherwise. energy_lo and energy_hi: percentile bootstrap over sequences, jackknife over groups of
    sequences where the bucket has moments only. Columns without the keys that are joined later; see ``tables`` for
    units.
    """
    unknown = set(spec["null_spaces"]) - {"complement", "ambient", "variance_weighted"}
    if unknown:
        raise ConfigError(f"energy.null_spaces: {sorted(unknown)} are not complement, ambient or variance_weighted")
    rows: list[dict[str, Any]] = []
    for site in bucket.sites:
        fitted = [basis for basis in bases if site in basis.sites]
        vectors = [basis.at(site, max(spec["ranks"])) for basis in fitted]
        listed: dict[str, Operator | Absent] = {q: token_operator(bucket, site, q, vectors, spec) for q in QUANTITIES}
        rows += _compared(site, listed, fitted, variance.get(site), spec)
    for name, found in (weights or {}).items():
        quantity = f"weight_gradient:{name.partition(':')[2]}"
        fitted = [basis for basis in bases if name in basis.sites]
        covariance = found.inputs.covariance if found.inputs.n > 1 else None
        rows += _compared(name, {quantity: weight_operator(found, spec)}, fitted, covariance, spec)
    frame = pd.DataFrame(rows)
    frame.insert(1, "bucket", bucket.name)
    return frame


def _compared(
    place: str,
    listed: Mapping[str, Operator | Absent],
    bases: Sequence[Basis],
    covariance: Array | None,
    spec: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Rows of all quantities at a site, or at a map "site:NAME", in every basis at every rank."""
    asked = "variance_weighted" in spec["null_spaces"]
    half = root(covariance) if asked and covariance is not None else np.zeros((0, 0))
    rows = []
    for index, basis in enumerate(bases):
        for rank in spec["ranks"]:
            key = {"site": place.partition(":")[0], "basis": basis.kind, "method": basis.method, "rank": rank}
            rows += [key | row for row in _cell(basis.at(place, rank), index, rank, listed, half, spec)]
    return rows


def _cell(
    vectors: Array,
    index: int,
    rank: int,
    listed: Mapping[str, Operator | Absent],
    half: Array,
    spec: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Rows of one basis and rank: all quantities share the variance-weighted draws."""
    missing = invalid(vectors, rank)
    frames = None
    if "variance_weighted" in spec["null_spaces"] and not missing:
        frames = variance_weighted_frames(half, vectors, spec["draws"]["variance_weighted"], spec["seed"])
    rows = []
    for quantity, operator in listed.items():
        if isinstance(operator, Operator) and not missing:
            found = _measured(operator, vectors, index, rank)
            short = "" if np.isfinite(found["energy_lo"]) else operator.replicates.missing or NO_ENERGY
            nulls = [_null_columns(s, operator, vectors, frames, found["energy"], spec) for s in spec["null_spaces"]]
        else:
            found, short = EMPTY, missing if isinstance(operator, Operator) else operator.reason
            nulls = [{"null_space": s, **NO_NULL, "n_nulls": 0, "reason": ""} for s in spec["null_spaces"]]
        for null in nulls:
            null["reason"] = "; ".join(r for r in (null["reason"], short) if r)
        rows += [{"quantity": quantity, "n_tokens": operator.n, **found, **null} for null in nulls]
    return rows


def invalid(vectors: Array, rank: int) -> str:
    """Why a basis cannot be used at this rank, or nothing."""
    d, have = vectors.shape
    valid = int(np.isfinite(vectors).all(axis=0).sum())
    if have < rank or valid < rank:
        return f"the basis has {valid} components, rank {rank} asked for"
    return f"rank {rank} leaves no complement of that rank in width {d}" if 2 * rank > d else ""


def _measured(operator: Operator, vectors: Array, index: int, rank: int) -> dict[str, float]:
    energy = min(energy_fraction(operator.matrix, vectors), 1.0)
    lo, hi = operator.replicates.interval(index, rank)
    return {
        "energy": energy,
        "energy_lo": lo,
        "energy_hi": hi,
        "enrichment": enrichment(energy, rank, vectors.shape[0]),
    }


def _null_columns(
    space: str, operator: Operator, vectors: Array, frames: Float | None, energy: float, spec: Mapping[str, Any]
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
        "p_value": np.nan if flat and not empty else _larger_p(null, operator, rank, energy, seed),
        "n_nulls": draws,
        "reason": reason,
    }


def _larger_p(null: Null, operator: Operator, rank: int, energy: float, seed: int) -> float:
    """The larger of the p-values against the null and against as many Haar subspaces of the whole space.

    Draws that are kept outside the basis are not exchangeable with it: where nothing is true they alone would be
    reached too often (18 % at the 5 % level at k/d = 1/4, 7 % at 1/16, if one direction holds all the energy).
    """
    whole = ambient_null(operator.eigenvalues, rank, len(null.draws), seed)
    return max(p_value(null.draws, energy), p_value(whole.draws, energy))
