"""Order of contact between a cloud and its tangent: normal distance ~ (tangent distance)^order, 2 if it curves.

Bernas et al. 2026 (tangent components O(t), normal components O(t^2)); the estimator is our choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.undefined import Undefined

Float = NDArray[np.float64]
Int = NDArray[np.intp]

BINS = 12
LARGEST_ORDER = 6.0
ORDERS: Float = np.linspace(0, LARGEST_ORDER, 121)
FARTHEST = 4.0
REWEIGHTED = 6


@dataclass(frozen=True)
class Law:
    """y^2 = offset^2 + (coefficient * t^order)^2, fitted to rows; curvature is 2 x the coefficient at order 2."""

    order: float
    offset: float
    coefficient: float
    curvature: float

    def at(self, t: Float) -> Float:
        """The fitted y at distances t, any shape."""
        y: Float = np.sqrt(self.offset**2 + (self.coefficient * t**self.order) ** 2)
        return y


@dataclass(frozen=True)
class Contact:
    """Contact at one base point: the law of r_N in r_T over the window, and what it was read from.

    inside (n, k) and across (n, d): every row's offset from the base along and off the tangent basis (d, k);
    rows (m,): the window, by rising r_T; gap: largest variance off the tangent over the smallest along it.
    """

    law: Law
    inside: Float
    across: Float
    basis: Float
    rows: Int
    gap: float

    @property
    def tangent(self) -> Float:
        """r_T of the window's rows, (m,)."""
        distance: Float = np.linalg.norm(self.inside[self.rows], axis=1)
        return distance

    @property
    def normal(self) -> Float:
        """r_N of the window's rows, (m,)."""
        distance: Float = np.linalg.norm(self.across[self.rows], axis=1)
        return distance


def medoid(values: Float) -> int:
    """Index of the row of (n, d) with the smallest sum of distances to all others: a point on the cloud."""
    centred = values - values.mean(axis=0)
    square = np.sum(centred**2, axis=1)
    apart = np.maximum(square[:, None] + square[None, :] - 2 * centred @ centred.T, 0.0)
    return int(np.argmin(np.sqrt(apart).sum(axis=1)))


def contact(values: Float, *, rank: int, neighbours: int, base: Float | None = None) -> Contact:
    """Contact of the cloud (n, d) with its rank-``rank`` tangent at ``base`` (d,), the medoid by default.

    The tangent is the PCA of the ``neighbours`` rows nearest to the base point; the window holds as many rows,
    the nearest along that tangent. Raises Undefined where fewer than three rows a fitted number remain, or all
    lie in the tangent.
    """
    point = values[medoid(values)] if base is None else base
    offsets = values - point
    distance = np.linalg.norm(offsets, axis=1)
    order = np.argsort(distance, kind="stable")
    near = offsets[order[distance[order] > 0][:neighbours]]
    if len(near) < max(9, 2 * rank) or rank >= values.shape[1]:
        raise Undefined("too few rows near the base point")
    # PCA about the neighbours' own mean: curvature shifts that mean along the normal, which is no tangent
    _, spread, directions = np.linalg.svd(near - near.mean(axis=0), full_matrices=False)
    basis = directions[:rank].T
    inside = offsets @ basis
    across = offsets - inside @ basis.T
    tangent, normal = np.linalg.norm(inside, axis=1), np.linalg.norm(across, axis=1)
    usable = np.flatnonzero((tangent > 0) & (normal > 1e-12 * distance.max()))
    # a ball would lose the rows far off the tangent at its rim, so the order would come out low: a cylinder
    window = usable[np.argsort(tangent[usable], kind="stable")[:neighbours]]
    if len(window) < 9:
        raise Undefined("the rows lie in their tangent")
    window = window[normal[window] <= FARTHEST * np.median(normal[window])]
    gap = float((spread[rank] / spread[rank - 1]) ** 2) if spread[rank - 1] > 0 else float("inf")
    return Contact(fit_law(tangent[window], normal[window]), inside, across, basis, window, gap)


def fit_law(t: Float, y: Float) -> Law:
    """The law of y > 0 in t > 0, both (m,): least squares of log mean y^2 over bins of equal count in t.

    Means of squares in bins, not rows: a row whose curvature and tilt cancel has log y far below any law.
    Raises Undefined where all rows are equally far.
    """
    if np.ptp(t) <= 1e-9 * t.max():
        raise Undefined("all rows are equally far")
    unit_t, unit_y = float(np.sqrt(np.mean(t**2))), float(np.sqrt(np.mean(y**2)))
    bins = np.array_split(np.argsort(t, kind="stable"), min(BINS, len(t) // 3))
    square = np.array([np.mean((y[rows] / unit_y) ** 2) for rows in bins])
    scaled = [t[rows] / unit_t for rows in bins]
    cost = _profile(ORDERS, scaled, square)[0]
    step = ORDERS[1]
    close = np.clip(ORDERS[int(np.argmin(cost))] + np.linspace(-step, step, 21), 0, LARGEST_ORDER)
    cost, offset, height = _profile(close, scaled, square)
    best = int(np.argmin(cost))
    parabola = float(np.sqrt(_profile(np.array([2.0]), scaled, square)[2][0]))
    order = float(close[best])
    return Law(
        order=order,
        offset=float(np.sqrt(offset[best])) * unit_y,
        coefficient=float(np.sqrt(height[best])) * unit_y / unit_t**order,
        curvature=2 * parabola * unit_y / unit_t**2,
    )


def _profile(orders: Float, scaled: list[Float], square: Float) -> tuple[Float, Float, Float]:
    """(cost, offset^2, height^2) of the best law at each of P orders, given its bins; each (P,).

    The two numbers are linear once the order is held: least squares of relative errors, reweighted by the fit.
    """
    power = np.array([[np.mean(t ** (2 * order)) for t in scaled] for order in orders])
    weight = np.broadcast_to(square**-2.0, power.shape)
    offset = height = np.empty(0)
    fitted = power
    for _ in range(REWEIGHTED):
        s0, s1, s2 = (np.sum(weight * power**i, axis=1) for i in range(3))
        b0, b1 = np.sum(weight * square, axis=1), np.sum(weight * power * square, axis=1)
        determinant = s0 * s2 - s1**2
        solved = determinant > 1e-12 * s0 * s2
        safe = np.where(solved, determinant, 1.0)
        offset, height = (b0 * s2 - b1 * s1) / safe, (b1 * s0 - b0 * s1) / safe
        flat = ~solved | (height <= 0)
        offset = np.where(flat, b0 / s0, offset)
        height = np.where(flat, 0.0, height)
        height = np.where(offset < 0, b1 / s2, height)
        offset = np.maximum(offset, 0.0)
        fitted = offset[:, None] + height[:, None] * power
        weight = fitted**-2.0
    cost = np.sum((np.log(fitted) - np.log(square)) ** 2, axis=1)
    return cost, offset, height
