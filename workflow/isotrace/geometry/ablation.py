"""Isotropy before and after a basis is removed, against removing random subspaces of the same rank.

The removal test of Bernas et al. 2026, with exact p-values over many draws and estimators that do not depend on n.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.bases import Basis
from isotrace.geometry.nulls import p_value
from isotrace.geometry.removal import Cloud, cloud, without
from isotrace.geometry.rows import Bucket, Quantity, Rows
from isotrace.geometry.scores import Ablated, Score, ablated, anisotropy_share, estimator_list

Array = NDArray[np.float64]
Spec = Mapping[str, Any]
QUANTITIES: tuple[Quantity, ...] = ("activation", "gradient")
NO_NULL = ("score_without_normal_mean", "score_without_normal_lo", "score_without_normal_hi", "delta_normal", "p_value")
NO_SCORE = (
    "shrinkage",
    "score",
    "score_lo",
    "score_hi",
    "score_without_tangent",
    "delta_tangent",
    *NO_NULL,
    "anisotropy_share",
)


def isotropy_table(
    bucket: Bucket, bases: Sequence[Basis], spec: Spec, *, pooled: Mapping[tuple[str, str], Array]
) -> pd.DataFrame:
    """One row per site, quantity, basis, rank, estimator, convention, outlier rule and null space.

    pooled[site, quantity] (d, d) is the covariance over all buckets, C0 of ``pooled``. ``score`` is of the
    whole in d dimensions whatever the convention; what is left is scored in d (ambient) or d - k
    (complement). Intervals of the score: jackknife over groups of sequences; of the normal: quantiles of
    the draws. anisotropy_share uses the U-statistic on every row. ConfigError for unknown names in the spec.
    """
    _check(spec)
    rows: list[dict[str, Any]] = []
    for site in bucket.sites:
        for quantity in QUANTITIES:
            found = bucket.rows(site, quantity)
            keep = inliers(found, spec["outlier_threshold"])
            c0 = pooled.get((site, quantity))
            whole: list[dict[str, Any]] = []
            for rule in spec["outliers"]:
                same = whole and bool(keep.all())
                kept = found if rule == "kept" else found.select(keep)
                made = whole if same else _site(kept, site, bases, spec, c0)
                made = made if same or rule == "kept" else [_without_pooled(row) for row in made]
                whole = whole or made
                rows += [{"site": site, "quantity": quantity, **row, "outliers": rule} for row in made]
    frame = pd.DataFrame(rows)
    frame.insert(1, "bucket", bucket.name)
    return frame


def _without_pooled(row: dict[str, Any]) -> dict[str, Any]:
    """Nothing for ``pooled`` once outliers are dropped: the covariance over all buckets still holds them."""
    if row["c0"] != "pooled" or row["reason"]:
        return row
    return {**row, **dict.fromkeys(NO_SCORE, np.nan), "n_nulls": 0, "reason": "C0 over all buckets holds the outliers"}


def inliers(rows: Rows, threshold: float) -> NDArray[np.bool_]:
    """Rows (n,) whose log norm is within ``threshold`` robust standard deviations of the median.

    The robust sd is 1.4826 times the median absolute deviation; rows of norm zero are never inliers of
    a cloud that has others.
    """
    norm = np.linalg.norm(rows.values, axis=1)
    if not np.any(norm > 0):
        return np.ones(rows.n, np.bool_)
    log = np.log(np.maximum(norm, np.finfo(np.float64).tiny))
    middle = np.median(log)
    spread = 1.4826 * np.median(np.abs(log - middle))
    # Norms equal up to rounding have no scale to be outlying on.
    return np.asarray(np.abs(log - middle) <= threshold * max(float(spread), 1e-6))


def _check(spec: Spec) -> None:
    allowed = {
        "null_spaces": ("complement", "ambient"),
        "conventions": ("complement", "ambient"),
        "outliers": ("kept", "dropped"),
    }
    for key, names in allowed.items():
        for name in spec[key]:
            if name not in names:
                raise ConfigError(f"isotropy.{key}: {name!r} is not one of {', '.join(names)}")
    if spec["order"] not in ("shrink_then_remove", "remove_then_shrink"):
        raise ConfigError(f"isotropy.order: {spec['order']!r} is not shrink_then_remove or remove_then_shrink")


def _site(rows: Rows, site: str, bases: Sequence[Basis], spec: Spec, pooled: Array | None) -> list[dict[str, Any]]:
    """All rows of one cloud, without the keys site, quantity and outliers."""
    problem = f"{rows.n} rows, fewer than min_rows {spec['min_rows']}" if rows.n < spec["min_rows"] else ""
    prepared = None
    if not problem:
        prepared = cloud(np.asarray(rows.values, np.float64), rows.sequence, spec["groups"])
        problem = "" if prepared.q.sum() > 0 else "the rows do not vary"
    table = []
    for basis in bases:
        for rank in spec["ranks"]:
            vectors = basis.at(site, rank)
            reason = problem or _invalid(vectors, rank)
            key = {"basis": basis.kind, "method": basis.method, "rank": rank, "n_tokens": rows.n}
            if reason or prepared is None:
                table += [{**key, **row} for row in _nothing(spec, reason)]
            else:
                table += [{**key, **row} for row in _basis(prepared, vectors, spec, pooled)]
    return table


def _invalid(vectors: Array, rank: int) -> str:
    """Why a basis cannot be used at this rank, or nothing."""
    d = vectors.shape[0]
    valid = int(np.isfinite(vectors).all(axis=0).sum())
    if valid < rank:
        return f"the basis has {valid} components, rank {rank} asked for"
    return f"rank {rank} leaves no complement of that rank in width {d}" if 2 * rank > d else ""


def _nothing(spec: Spec, reason: str) -> list[dict[str, Any]]:
    """Rows of NaN that carry a reason, as many as there would be with numbers."""
    return [
        {**_names(e, z, c, s), **dict.fromkeys(NO_SCORE, np.nan), "n_nulls": 0, "reason": reason}
        for s in spec["null_spaces"]
        for e, z in estimator_list(spec)
        for c in spec["conventions"]
    ]


def _names(estimator: str, c0: str, convention: str, space: str) -> dict[str, Any]:
    return {"estimator": estimator, "c0": c0, "convention": convention, "null_space": space}


def _basis(c: Cloud, vectors: Array, spec: Spec, pooled: Array | None) -> list[dict[str, Any]]:
    """Rows of one cloud and basis."""
    left = without(c, vectors)
    share, share_reason = anisotropy_share(c, left, vectors.shape[1], spec["confidence"])
    rows = []
    for space in spec["null_spaces"]:
        results = ablated(c, left, vectors, space, spec, pooled)
        for estimator, c0 in estimator_list(spec):
            for convention in spec["conventions"]:
                dims = c.y.shape[1] - (vectors.shape[1] if convention == "complement" else 0)
                columns, reasons = _columns(results[estimator, c0], dims, spec["confidence"])
                reason = "; ".join(r for r in (*reasons, share_reason) if r)
                row = {**_names(estimator, c0, convention, space), **columns}
                rows.append({**row, "anisotropy_share": share, "reason": reason})
    return rows


def _columns(result: Ablated, dims: int, confidence: float) -> tuple[dict[str, Any], list[str]]:
    """The numbers of one estimator under one convention, and why some are NaN."""
    score: Score = result.score
    left, draws = result.tangent(dims), result.normals(dims)
    delta, null = left - score.estimate.value, draws - score.estimate.value
    columns: dict[str, Any] = {
        "shrinkage": result.shrinkage,
        "score": score.estimate.value,
        "score_lo": score.estimate.lo,
        "score_hi": score.estimate.hi,
        "score_without_tangent": left,
        "delta_tangent": delta,
        **dict.fromkeys(NO_NULL, np.nan),
        "n_nulls": draws.size,
    }
    undefined = int(np.count_nonzero(~np.isfinite(draws)))
    if not np.isfinite(score.estimate.value):
        return columns, [score.reason]
    reasons = [score.reason, "" if np.isfinite(left) else "nothing measurable is left without the basis"]
    if undefined:
        reasons.append(f"{undefined} of {draws.size} draws have no positive denominator")
    if undefined or not np.isfinite(delta):
        return columns, reasons
    tail = (1 - confidence) / 2
    lo, hi = np.quantile(draws, [tail, 1 - tail])
    normal = {"mean": float(draws.mean()), "lo": float(lo), "hi": float(hi)}
    columns |= {f"score_without_normal_{name}": value for name, value in normal.items()}
    return columns | {"delta_normal": float(null.mean()), "p_value": p_value(null, delta)}, reasons
