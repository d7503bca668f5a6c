"""One cloud's scores whole, without the tangent and without random normals, by every estimator.

Definitions in ``isotropy``; the share of anisotropy in a basis is our choice.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.isotropy import C0, LEAST_CORRECTED, Sums, isoscore, shrunk, star_weight, target_scale
from isotrace.geometry.jackknife import Estimate, corrected, jackknife
from isotrace.geometry.removal import (
    Cloud,
    Outside,
    first_frames,
    haar_removed,
    haar_ustat,
    outside,
    replicates,
)

Array = NDArray[np.float64]
Spec = Mapping[str, Any]
ESTIMATORS = ("plugin", "star", "ustat", "corrected")
UNDEFINED = "the unbiased denominator is not positive"


@dataclass(frozen=True)
class Score:
    """A score with its jackknife interval, or why it is NaN."""

    estimate: Estimate
    reason: str


@dataclass(frozen=True)
class Ablated:
    """One estimator on one cloud and basis.

    shrinkage used; score of the whole in d dimensions; tangent(dims) the score without the basis and
    normals(dims) (B,) those without random subspaces, in ``dims`` dimensions.
    """

    shrinkage: float
    score: Score
    tangent: Callable[[int], float]
    normals: Callable[[int], Array]


def estimator_list(spec: Spec) -> list[tuple[str, str]]:
    """(estimator, c0) pairs of a spec; c0 is empty for all but ``star``."""
    pairs: list[tuple[str, str]] = []
    for name in spec["estimators"]:
        if name not in ESTIMATORS:
            raise ConfigError(f"isotropy.estimators: {name!r} is not one of {', '.join(ESTIMATORS)}")
        pairs += [(name, c0) for c0 in spec["c0"]] if name == "star" else [(name, "")]
    for _, c0 in pairs:
        if c0 and c0 not in C0:
            raise ConfigError(f"isotropy.c0: {c0!r} is not one of {', '.join(C0)}")
    return pairs


def ablated(
    c: Cloud, without_tangent: Cloud, vectors: Array, space: str, spec: Spec, pooled: Array | None
) -> dict[tuple[str, str], Ablated]:
    """Every estimator on a cloud, without the tangent (d, k) and without draws of null space ``space``.

    The products behind the draws are made once and read by all estimators and both conventions.
    """
    tangent = vectors if space == "complement" else vectors[:, :0]
    out = outside(c.covariance, tangent)
    rank, draws, seed = vectors.shape[1], spec["draws"], spec["seed"]
    removed = haar_removed(c.covariance, out, rank, draws, seed)
    left = without_tangent.base
    results = {}
    for name, c0 in estimator_list(spec):
        if name == "star" and c0 == "pooled":
            results[name, c0] = _pooled_star(c, vectors, tangent, spec, pooled)
        elif name == "star":
            results[name, c0] = _scaled_star(c, left, removed, c0, rank, spec)
        elif name == "plugin":
            score = _score(isoscore(c.base.trace, c.base.frobenius, c.y.shape[1]), spec)
            results[name, c0] = _fixed(0.0, score, (left.trace[0], left.frobenius[0]), removed)
        elif name == "ustat":
            normals = (removed[0], haar_ustat(c, out, removed, rank, draws, seed))
            score = _score(_ustat(c), spec)
            results[name, c0] = _fixed(0.0, score, (left.trace[0], left.ustat[0]), normals)
        else:
            results[name, c0] = _corrected(c, left, out, rank, spec)
    return results


def anisotropy_share(c: Cloud, left: Cloud, rank: int, confidence: float) -> tuple[float, str]:
    """1 - (f' - t'^2/(d-k)) / (f - t^2/d) with the U-statistic's f: the part of anisotropy inside a basis;
    ``left`` is the cloud without the basis of this rank.

    NaN with a reason where the cloud's own anisotropy is within its jackknife noise.
    """
    d = c.y.shape[1]
    if not c.parts:
        return np.nan, "anisotropy_share: too few sequences to know its noise"
    own = jackknife(c.base.ustat - c.base.trace**2 / d, confidence)
    if not own.plain.lo > 0:
        return np.nan, "anisotropy_share: the anisotropy is within its noise"
    rest = left.base.ustat[0] - left.base.trace[0] ** 2 / (d - rank)
    return float(1 - rest / own.plain.value), ""


def _ustat(c: Cloud) -> Array:
    return isoscore(c.base.trace, c.base.ustat, c.y.shape[1])


def _score(values: Array, spec: Spec) -> Score:
    """Plain estimate from values (1 + G,); an undefined replicate takes away the interval only."""
    if values.size == 1:
        found = Estimate(float(values[0]), np.nan, np.nan)
        return Score(found, _few(spec) if np.isfinite(values[0]) else UNDEFINED)
    found = jackknife(values, spec["confidence"]).plain
    if np.isfinite(values).all():
        return Score(found, "")
    where = "" if not np.isfinite(values[0]) else " with a group left out: no interval"
    return Score(found, UNDEFINED + where)


def _few(spec: Spec) -> str:
    return f"no jackknife: fewer sequences than its {spec['groups']} groups"


def _fixed(shrinkage: float, score: Score, left: tuple[Any, Any], normals: tuple[Array, Array]) -> Ablated:
    """An estimator that is isoscore of a trace and a Frobenius norm."""
    return Ablated(shrinkage, score, lambda dims: float(isoscore(*left, dims)), lambda dims: isoscore(*normals, dims))


def _scaled_star(c: Cloud, left: Sums, removed: tuple[Array, Array], c0: str, rank: int, spec: Spec) -> Ablated:
    """Shrinkage toward a multiple of the identity, in closed form before and after removal."""
    d = c.y.shape[1]
    z = star_weight(c.base, c0, spec["shrinkage"], d)
    weight = float(np.broadcast_to(z, c.base.trace.shape)[0])
    scale = target_scale(c.base, c0, d)
    score = _score(isoscore(*shrunk(c.base, scale, z, d), d), spec)
    whole = (left.trace[0], left.frobenius[0])
    mixed = []
    for trace, frobenius in (whole, removed):
        s = Sums(
            c.base.n[0], np.asarray(trace), np.asarray(frobenius), np.asarray(np.nan), np.asarray(np.nan), c.base.q4[0]
        )
        after = target_scale(s, c0, d - rank) if spec["order"] == "remove_then_shrink" else scale[0]
        mixed.append(shrunk(s, after, weight, d - rank))
    return _fixed(weight, score, mixed[0], mixed[1])


def _pooled_star(c: Cloud, vectors: Array, tangent: Array, spec: Spec, pooled: Array | None) -> Ablated:
    """Shrinkage toward the pooled covariance; removal is linear, so that its order makes no difference."""
    if pooled is None:
        raise ConfigError("isotropy.c0: pooled needs the covariance over all buckets")
    z, rank = spec["shrinkage"], vectors.shape[1]
    mixed = (1 - z) * c.covariance + z * pooled
    inner = _inner_left_out(c, pooled)
    trace = (1 - z) * c.base.trace + z * np.trace(pooled)
    frobenius = (1 - z) ** 2 * c.base.frobenius + 2 * z * (1 - z) * inner + z**2 * np.square(pooled).sum()
    score = _score(isoscore(trace, frobenius, c.y.shape[1]), spec)
    bare = mixed - vectors @ (vectors.T @ mixed)
    bare -= (bare @ vectors) @ vectors.T
    normals = haar_removed(mixed, outside(mixed, tangent), rank, spec["draws"], spec["seed"])
    return _fixed(z, score, (np.trace(bare), np.square(bare).sum()), normals)


def _inner_left_out(c: Cloud, other: Array) -> Array:
    """tr(C other) of the covariance of all rows and of all but each group, (1 + G,)."""
    rows = np.einsum("ij,ij->i", c.y @ other, c.y)
    shifts = np.asarray([c.y[part].sum(axis=0) for part in c.parts]).reshape(-1, other.shape[0])
    inside = np.asarray([rows[part].sum() for part in c.parts], np.float64)
    bent = np.einsum("gd,gd->g", shifts @ other, shifts)
    scatter = np.concatenate([[rows.sum()], rows.sum() - inside - bent / c.base.n[1:]])
    return np.asarray(scatter / (c.base.n - 1))


def _corrected(c: Cloud, left: Sums, out: Outside, rank: int, spec: Spec) -> Ablated:
    """The jackknife-corrected ratio, for the whole, the tangent and the first of the draws alike."""
    count = min(spec["draws_corrected"], spec["draws"])
    if not c.parts or len(c.y) < LEAST_CORRECTED:
        why = f"{len(c.y)} rows, no corrected score below {LEAST_CORRECTED}" if c.parts else _few(spec)
        nothing = Score(Estimate(np.nan, np.nan, np.nan), why)
        return Ablated(0.0, nothing, lambda dims: np.nan, lambda dims: np.full(count, np.nan))
    values = c.base.unbiased(c.y.shape[1])
    found = jackknife(values, spec["confidence"]).corrected
    score = Score(found, "" if np.isfinite(values).all() else UNDEFINED)
    drawn = replicates(c, first_frames(out, rank, count, spec["seed"]))
    return Ablated(
        0.0,
        score,
        lambda dims: float(corrected(left.unbiased(dims))),
        lambda dims: corrected(drawn.unbiased(dims)),
    )
