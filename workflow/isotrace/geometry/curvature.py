"""How much curvature a ball of given size lets one see: arc length against straight-line radius.

Bernas et al. 2026 argue that contraction toward the centroid hides curvature; the curve z = kappa u^2 / 2
is our exact test case, with excess kappa^2 rho^2 / 24 to leading order.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Float = NDArray[np.float64]


def tangent_reach(curvature: ArrayLike, ambient_radius: ArrayLike) -> Float:
    """u > 0 at which z = curvature u^2 / 2 leaves the ball |(u, z)| = ambient_radius; shapes broadcast.

    curvature in 1/length, not zero; ambient_radius a length > 0.
    """
    kappa, rho = np.asarray(curvature, np.float64), np.asarray(ambient_radius, np.float64)
    reach: Float = rho * np.sqrt(2 / (1 + np.sqrt(1 + (kappa * rho) ** 2)))
    return reach


def arc_length(curvature: ArrayLike, u: ArrayLike) -> Float:
    """Length along z = curvature u^2 / 2 from the origin to u; shapes broadcast, curvature not zero."""
    kappa, u = np.asarray(curvature, np.float64), np.asarray(u, np.float64)
    slope = kappa * u
    length: Float = (u * np.sqrt(1 + slope**2) + np.arcsinh(slope) / kappa) / 2
    return length


def curvature_excess(curvature: ArrayLike, ambient_radius: ArrayLike) -> Float:
    """Arc length over ambient radius, minus one: the share by which the curve is longer than it looks."""
    reach = tangent_reach(curvature, ambient_radius)
    excess: Float = arc_length(curvature, reach) / np.asarray(ambient_radius, np.float64) - 1
    return excess


def leading_excess(curvature: ArrayLike, ambient_radius: ArrayLike) -> Float:
    """curvature^2 ambient_radius^2 / 24: what ``curvature_excess`` tends to as the radius shrinks."""
    excess: Float = (np.asarray(curvature, np.float64) * np.asarray(ambient_radius, np.float64)) ** 2 / 24
    return excess
