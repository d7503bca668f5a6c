"""Energy of a basis at every rank, its mean over ranks, and the ranks that hold half and nine tenths of it.

Energy as in Bernas et al. 2026, which fixes one rank; the curve and its summaries are our choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import NO_ENERGY, QUANTITIES
from isotrace.geometry.energy_operators import Absent, Operator, token_operator, weight_operator
from isotrace.geometry.rows import Bucket
from isotrace.geometry.summed import BucketMoments, MapMoments

Array = NDArray[np.float64]
SHARES = {"rank_50": 0.5, "rank_90": 0.9}


def rank_curve_table(
    bucket: Bucket | BucketMoments,
    bases: Sequence[Basis],
    spec: Mapping[str, Any],
    *,
    weights: Mapping[str, MapMoments] | None = None,
) -> pd.DataFrame:
    """Per site, quantity and basis: energy at every rank up to the largest, then area, rank_50 and rank_90.

    ``isotropic`` is the value under G = I: k/d, (K+1)/(2d), the least rank with k/d at the share. Arguments as of
    ``energy_table``; intervals as there, that of a rank from the curve's. A NaN has its reason.
    """
    rows: list[dict[str, Any]] = []
    for site in bucket.sites:
        fitted = [basis for basis in bases if site in basis.sites]
        vectors = [basis.at(site, max(spec["ranks"])) for basis in fitted]
        for quantity in QUANTITIES:
            operator = token_operator(bucket, site, quantity, vectors, spec)
            rows += _curves({"site": site, "quantity": quantity}, operator, fitted, vectors, spec)
    for name, found in (weights or {}).items():
        site, _, part = name.partition(":")
        fitted = [basis for basis in bases if name in basis.sites]
        vectors = [basis.at(name, max(spec["ranks"])) for basis in fitted]
        key = {"site": site, "quantity": f"weight_gradient:{part}"}
        rows += _curves(key, weight_operator(found, spec), fitted, vectors, spec)
    frame = pd.DataFrame(rows)
    frame.insert(1, "bucket", bucket.name)
    return frame


def curve_of(matrix: Array, vectors: Array) -> Array:
    """Energies (K,) of G (d, d) in the first 1 to K of orthonormal vectors (d, K)."""
    inside = np.einsum("dk,dk->k", vectors, matrix @ vectors)
    return np.asarray(np.minimum(np.cumsum(inside) / np.trace(matrix), 1.0))


@dataclass(frozen=True)
class _Curve:
    """value, lo and hi (K,) at the ranks 1 to K, and why each has gaps; bounds of the mean; width d."""

    value: Array
    lo: Array
    hi: Array
    reasons: tuple[str, ...]
    mean: tuple[float, float]
    d: int


def _curves(
    key: dict[str, str],
    operator: Operator | Absent,
    bases: Sequence[Basis],
    vectors: Sequence[Array],
    spec: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Rows of one site and quantity in every basis."""
    rows = []
    for index, (basis, columns) in enumerate(zip(bases, vectors, strict=True)):
        one = key | {"basis": basis.kind, "method": basis.method, "n_tokens": operator.n}
        curve = _curve(operator, columns, index, max(spec["ranks"]))
        rows += [one | row for row in (*_energies(curve), _area(curve), *_ranks(curve))]
    return rows


def _curve(operator: Operator | Absent, vectors: Array, index: int, ranks: int) -> _Curve:
    """The curve of one basis; components that it lacks have no value."""
    value, lo, hi = np.full((3, ranks), np.nan)
    d = len(vectors)
    if isinstance(operator, Absent):
        return _Curve(value, lo, hi, (operator.reason,) * ranks, (np.nan, np.nan), d)
    valid = int(np.isfinite(vectors).all(axis=0).sum())
    value[:valid] = curve_of(operator.matrix, vectors[:, :valid])
    for rank in range(1, valid + 1):
        lo[rank - 1], hi[rank - 1] = operator.replicates.interval(index, rank)
    short = operator.replicates.missing or NO_ENERGY
    reasons = ["" if np.isfinite(bound) else short for bound in lo[:valid]]
    reasons += [f"the basis has {valid} components"] * (ranks - valid)
    whole = operator.replicates.mean_interval(index) if valid == ranks else (np.nan, np.nan)
    return _Curve(value, lo, hi, tuple(reasons), whole, d)


def _energies(curve: _Curve) -> list[dict[str, Any]]:
    columns = zip(curve.value, curve.lo, curve.hi, curve.reasons, strict=True)
    names = ("value", "lo", "hi", "reason")
    return [
        {"statistic": "energy", "rank": k, "isotropic": k / curve.d} | dict(zip(names, row, strict=True))
        for k, row in enumerate(columns, start=1)
    ]


def _area(curve: _Curve) -> dict[str, Any]:
    """The mean energy over the ranks."""
    top = len(curve.value)
    lo, hi = curve.mean
    row = {"statistic": "area", "rank": top, "isotropic": (top + 1) / (2 * curve.d)}
    row |= {"value": float(curve.value.mean()), "lo": lo, "hi": hi}
    return row | {"reason": "" if np.isfinite(lo) else curve.reasons[-1]}


def _ranks(curve: _Curve) -> list[dict[str, Any]]:
    """The least rank whose energy reaches each share; its bounds are where the bounds of the curve do."""
    rows = []
    for statistic, share in SHARES.items():
        # The upper bound of the energy is reached first, so it gives the lower bound of the rank.
        found = {
            "value": _reached(curve.value, share),
            "lo": _reached(curve.hi, share),
            "hi": _reached(curve.lo, share),
        }
        least = int(np.ceil(round(share * curve.d, 9)))
        row = {"statistic": statistic, "rank": len(curve.value), "isotropic": float(least), **found}
        rows.append(row | {"reason": _why(curve, found, share)})
    return rows


def _reached(energies: Array, share: float) -> float:
    at = np.flatnonzero(energies >= share)
    return float(at[0] + 1) if at.size else np.nan


def _why(curve: _Curve, found: Mapping[str, float], share: float) -> str:
    """What is missing from a rank, or nothing."""
    if np.isfinite(list(found.values())).all():
        return ""
    told = next((reason for reason in curve.reasons if reason), "")
    known = np.isfinite(found["value"])
    if np.isnan(curve.value).all() or (known and np.isnan(curve.lo).all()):
        return told
    what = "its interval" if known else "the energy"
    return f"{what} does not reach {share:.0%} by rank {len(curve.value)}{f'; {told}' if told else ''}"
