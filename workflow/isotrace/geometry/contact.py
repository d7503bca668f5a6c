"""Order of contact between a cloud and its tangent: normal distance ~ (tangent distance)^order, 2 if it curves.

Bernas et al. 2026 (tangent components O(t), normal components O(t^2)); estimator and controls are our choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.undefined import Undefined
from isotrace.seeding import generator

Float = NDArray[np.float64]

BINS = 12
CONTROLS = 5
CONTROL_ORDER = 2.0
CONTROL_TOLERANCE = 0.2
LARGEST_ORDER = 6.0


@dataclass(frozen=True)
class Contact:
    """Contact at one base point: r_N^2 = offset^2 + (coefficient * r_T^order)^2 over the nearest rows.

    tangent (m,) and normal (m,): distances r_T and r_N of the m rows; basis (d, k) of the tangent;
    log_slope: plain slope of log r_N on log r_T, which an offset pulls toward 0.
    """

    order: float
    offset: float
    coefficient: float
    log_slope: float
    tangent: Float
    normal: Float
    basis: Float


def medoid(values: Float) -> int:
    """Index of the row of (n, d) with the smallest sum of distances to all others: a point on the cloud."""
    centred = values - values.mean(axis=0)
    square = np.sum(centred**2, axis=1)
    apart = np.maximum(square[:, None] + square[None, :] - 2 * centred @ centred.T, 0.0)
    return int(np.argmin(np.sqrt(apart).sum(axis=1)))


def contact(values: Float, *, rank: int, neighbours: int, base: Float | None = None) -> Contact:
    """Contact of the cloud (n, d) with its rank-``rank`` tangent at ``base`` (d,), the medoid by default.

    The tangent is the PCA of the ``neighbours`` rows nearest to the base point. Raises Undefined where
    fewer than three rows a fitted number remain, or all lie in the tangent.
    """
    point = values[medoid(values)] if base is None else base
    offsets = values - point
    distance = np.linalg.norm(offsets, axis=1)
    order = np.argsort(distance, kind="stable")
    near = offsets[order[distance[order] > 0][:neighbours]]
    if len(near) < max(9, 2 * rank):
        raise Undefined("too few rows near the base point")
    # PCA about the neighbours' own mean: curvature shifts that mean along the normal, which is no tangent
    basis = np.linalg.svd(near - near.mean(axis=0), full_matrices=False)[2][:rank].T
    inside = near @ basis
    tangent, normal = np.linalg.norm(inside, axis=1), np.linalg.norm(near - inside @ basis.T, axis=1)
    usable = (tangent > 0) & (normal > 1e-12 * distance[order][-1])
    if int(usable.sum()) < 9:
        raise Undefined("the rows lie in their tangent")
    tangent, normal = tangent[usable], normal[usable]
    return Contact(*_fit(tangent, normal), tangent, normal, basis)


def controlled_order(values: Float, *, rank: int, seed: int) -> float:
    """Contact order at the medoid of (n, d), reported only if the method finds 2 on known curvature.

    The controls are paraboloids with the cloud's own n, d, tangent coordinates, fitted curvature and
    noise. Raises Undefined ("undecided ...") where their mean order misses 2 by more than 0.2.
    """
    n = len(values)
    neighbours = max(12 * rank, n // 4)
    found = contact(values, rank=rank, neighbours=neighbours)
    control = np.mean([_control_order(values, found, neighbours, seed, i) for i in range(CONTROLS)])
    if not abs(control - CONTROL_ORDER) <= CONTROL_TOLERANCE:
        raise Undefined(f"undecided: controls of order 2 come out at {control:.2f}")
    return found.order


def gradient_slopes(tangent: Float, gradients: Float, basis: Float) -> tuple[float, float]:
    """Slopes of log|g_T| and of log|g_N| on log t; t (m,) tangent distances, gradients (m, d), basis (d, k).

    The published bounds have the first at 1 and the second at 2 in a small-radius window.
    """
    inside = gradients @ basis
    parts = np.linalg.norm(inside, axis=1), np.linalg.norm(gradients - inside @ basis.T, axis=1)
    usable = (tangent > 0) & (parts[0] > 0) & (parts[1] > 0)
    if int(usable.sum()) < 9:
        raise Undefined("too few non-zero gradients")
    x = np.log(tangent[usable])
    along, across = (_slope(x, np.log(part[usable])) for part in parts)
    return along, across


def _control_order(values: Float, found: Contact, neighbours: int, seed: int, index: int) -> float:
    """The order that ``contact`` finds on a paraboloid matched to the cloud, noise of the fitted offset."""
    n, d = values.shape
    rank = found.basis.shape[1]
    random = generator(seed, "contact_control", index)
    inside = (values - values.mean(axis=0)) @ found.basis
    scale = float(np.median(found.tangent))
    height = np.sum(inside**2, axis=1) * _curvature(found, scale)
    surface = np.concatenate([inside, height[:, None], np.zeros((n, d - rank - 1))], axis=1)
    noise = random.normal(size=(n, d)) * found.offset / np.sqrt(d - rank)
    try:
        return contact(surface + noise, rank=rank, neighbours=neighbours).order
    except Undefined:
        return float("nan")


def _curvature(found: Contact, scale: float) -> float:
    """The coefficient of a parabola as high as the fitted law is at r_T = ``scale``."""
    return float(found.coefficient * scale**found.order / scale**CONTROL_ORDER)


def _fit(tangent: Float, normal: Float) -> tuple[float, float, float, float]:
    """(order, offset, coefficient, log_slope) by least squares in log r_N over bins of equal count in r_T.

    Means of squares in bins, not rows: a row whose curvature and tilt cancel has log r_N far below any law.
    """
    from scipy.optimize import least_squares

    bins = np.array_split(np.argsort(tangent, kind="stable"), min(BINS, len(tangent) // 3))
    tangent, normal = (np.sqrt([np.mean(r[chosen] ** 2) for chosen in bins]) for r in (tangent, normal))
    # in units of the window's middle, so that the three numbers are of one size
    unit_t, unit_n = float(np.median(tangent)), float(np.median(normal))
    x, y = np.log(tangent / unit_t), np.log(normal / unit_n)
    slope = _slope(x, y)

    def residual(p: Float) -> Float:
        fitted: Float = np.logaddexp(2 * p[0], 2 * (p[1] + p[2] * x)) / 2
        return fitted - y

    bounds = ([-20.0, -20.0, 0.0], [5.0, 5.0, LARGEST_ORDER])
    starts = [[-6.0, 0.0, min(max(slope, 0.1), LARGEST_ORDER - 0.1)], [-1.0, -0.5, 2.0]]
    fits = [least_squares(residual, start, bounds=bounds) for start in starts]
    log_offset, log_height, order = min(fits, key=lambda fit: float(fit.cost)).x
    return float(order), float(np.exp(log_offset) * unit_n), float(np.exp(log_height) * unit_n / unit_t**order), slope


def _slope(x: Float, y: Float) -> float:
    x = x - x.mean()
    square = float(x @ x)
    if square == 0:
        raise Undefined("all rows are equally far")
    return float(x @ (y - y.mean()) / square)
