"""Energy ratios under the explanations that the paper leaves open, and the optimism of each basis, a row a cell.

Ratios as in Bernas et al. 2026; variance, mean direction, outlier dimensions, loss and age as controls are our choice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.alternatives import ratio, ratio_dropping, ratio_to_frames, ratio_without
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import QUANTITIES, invalid
from isotrace.geometry.energy_operators import Absent, Operator, token_operator
from isotrace.geometry.nulls import root, variance_weighted_frames
from isotrace.geometry.optimism import Optimism, fit_spec, optimism
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.tilting import effective, tilted
from isotrace.geometry.undefined import Undefined

Array = NDArray[np.float64]
COMPARED = ("fixed", "leave_one_out")
RATIOS = (
    "ratio",
    "ratio_variance_weighted",
    "ratio_mean_removed",
    "ratio_outliers_dropped",
    "ratio_loss_balanced",
    "ratio_moving",
)


@dataclass(frozen=True)
class _Place:
    """What the cells of one site share.

    mean (d,) and outliers (m,) of its evaluation activations; half (d, r), the root of their covariance; operators
    of both splits and those of rows weighted to the mean loss, by quantity; moving bases by method.
    """

    mean: Array
    outliers: NDArray[np.intp]
    half: Array
    evaluation: Mapping[Quantity, Operator | Absent]
    fit: Mapping[Quantity, Operator | Absent]
    balanced: Mapping[Quantity, tuple[Array, float] | str]
    moving: Mapping[str, Array]


def controls_table(
    evaluation: Bucket, fit: Bucket, bases: Sequence[Basis], spec: Mapping[str, Any], *, leaked: int, loss: float
) -> pd.DataFrame:
    """One row a site, quantity, fixed or leave-one-out basis, and rank.

    leaked: how many evaluation rows are fit rows; loss: the mean over buckets of their mean losses (nats). spec:
    that of ``energy_table`` and outlier_dimensions. Ratios are odds against the exact mean of a Haar complement,
    in the dimensions that are left; see ``tables`` for units. A NaN, interval included, has its reason.
    """
    rows: list[dict[str, Any]] = []
    weights = _weights(evaluation, loss)
    for site in evaluation.sites:
        compared = [basis for basis in bases if basis.kind in COMPARED and site in basis.sites]
        place = _place(evaluation, fit, site, bases, compared, weights, spec)
        for index, basis in enumerate(compared):
            for rank in spec["ranks"]:
                key = {"site": site, "basis": basis.kind, "method": basis.method, "rank": rank}
                rows += [key | row for row in _cell(place, basis.at(site, rank), index, basis.method, rank, spec)]
    frame = pd.DataFrame(rows).assign(leaked=leaked)
    frame.insert(1, "bucket", evaluation.name)
    return frame


def _place(
    evaluation: Bucket,
    fit: Bucket,
    site: str,
    bases: Sequence[Basis],
    compared: Sequence[Basis],
    weights: Array | str,
    spec: Mapping[str, Any],
) -> _Place:
    activations = evaluation.rows(site, "activation").values
    vectors = [basis.at(site, max(spec["ranks"])) for basis in compared]
    mean = activations.mean(axis=0) if len(activations) else np.zeros(activations.shape[1])
    spread = activations - mean
    half = root(spread.T @ spread / (len(spread) - 1)) if len(spread) > 1 else np.zeros((len(mean), 0))
    fitted = fit_spec(spec)
    return _Place(
        mean,
        np.argsort(-np.einsum("nd,nd->d", activations, activations), kind="stable")[: spec["outlier_dimensions"]],
        half,
        {q: token_operator(evaluation, site, q, vectors, spec) for q in QUANTITIES},
        {q: token_operator(fit, site, q, vectors, fitted) for q in QUANTITIES},
        {q: _balanced(evaluation, site, q, weights, spec) for q in QUANTITIES},
        {b.method: b.at(site, max(spec["ranks"])) for b in bases if b.kind == "moving" and site in b.sites},
    )


def _weights(bucket: Bucket, loss: float) -> Array | str:
    """Weights of the rows with a loss, or why there are none."""
    try:
        return tilted(np.asarray(bucket.loss[bucket.has_target], np.float64), loss)
    except Undefined as undefined:
        return str(undefined)


def _balanced(
    bucket: Bucket, site: str, quantity: Quantity, weights: Array | str, spec: Mapping[str, Any]
) -> tuple[Array, float] | str:
    """The operator (d, d) of the rows with a loss, weighted, and the effective number of them; or why there is none."""
    if isinstance(weights, str):
        return weights
    values = bucket.activations if quantity == "activation" else bucket.gradients
    rows = np.asarray(values[bucket.sites.index(site)][bucket.has_target], np.float64)
    kept = np.any(rows != 0, axis=1) | (quantity == "activation")
    rows, left = rows[kept], weights[kept]
    count = effective(left)
    if count < spec["min_rows"]:
        return f"{count:.1f} effective rows, fewer than min_rows {spec['min_rows']}"
    if quantity == "activation" or spec["centred"]:
        rows = rows - np.average(rows, axis=0, weights=left)
    return (rows * left[:, None]).T @ rows / left.sum(), count


def _cell(
    place: _Place, vectors: Array, index: int, method: str, rank: int, spec: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Rows of one basis and rank: both quantities share what is drawn and what is left of the basis."""
    missing = invalid(vectors, rank)
    frames = None
    if not missing:
        draws = spec["draws"]["variance_weighted"]
        frames = variance_weighted_frames(place.half, vectors, draws, spec["seed"])
    rows = []
    for quantity in QUANTITIES:
        operator = place.evaluation[quantity]
        row: dict[str, Any] = {"quantity": quantity, "n_tokens": operator.n}
        if isinstance(operator, Operator) and not missing:
            row |= _measured(place, operator, quantity, vectors, index, method, frames)
        else:
            reason = operator.reason if isinstance(operator, Absent) else missing
            row |= dict.fromkeys((*RATIOS, "n_effective"), np.nan) | _named(Optimism(reason=reason))
        rows.append(row)
    return rows


def _measured(
    place: _Place,
    operator: Operator,
    quantity: Quantity,
    vectors: Array,
    index: int,
    method: str,
    frames: NDArray[np.floating] | None,
) -> dict[str, Any]:
    matrix, balanced = operator.matrix, place.balanced[quantity]
    ways: dict[str, Callable[[], float]] = {
        "ratio": lambda: ratio(matrix, vectors),
        "ratio_variance_weighted": lambda: ratio_to_frames(matrix, vectors, frames),
        "ratio_mean_removed": lambda: ratio_without(matrix, vectors, place.mean),
        "ratio_outliers_dropped": lambda: ratio_dropping(matrix, vectors, place.outliers),
        "ratio_loss_balanced": lambda: _of_balanced(balanced, vectors),
        "ratio_moving": lambda: _of_moving(matrix, place.moving.get(method), vectors.shape[1]),
    }
    found: dict[str, float] = {}
    reasons: list[str] = []
    for name, way in ways.items():
        try:
            found[name] = way()
        except Undefined as undefined:
            found[name] = np.nan
            reasons.append(f"{name}: {undefined}")
    seen = optimism(place.fit[quantity], operator, vectors, index)
    reasons += [f"optimism: {seen.reason}"] if seen.reason else []
    count = np.nan if isinstance(balanced, str) else balanced[1]
    return {**found, "n_effective": count, **_named(seen), "reason": "; ".join(reasons)}


def _named(found: Optimism) -> dict[str, Any]:
    columns = {"value": "optimism", "lo": "optimism_lo", "hi": "optimism_hi", "reason": "reason"}
    return {columns[name]: value for name, value in asdict(found).items()}


def _of_balanced(balanced: tuple[Array, float] | str, vectors: Array) -> float:
    if isinstance(balanced, str):
        raise Undefined(balanced)
    return ratio(balanced[0], vectors)


def _of_moving(matrix: Array, vectors: Array | None, rank: int) -> float:
    if vectors is None:
        raise Undefined("no moving basis of this method")
    if missing := invalid(vectors[:, :rank], rank):
        raise Undefined(missing)
    return ratio(matrix, vectors[:, :rank])
