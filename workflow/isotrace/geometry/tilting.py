"""Weights of rows that give a bucket the mean loss of all buckets: does difficulty explain a difference?

Exponential tilting (Csiszar 1975), the weights nearest to equal ones in relative entropy; its use here is our choice.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from isotrace.geometry.undefined import Undefined

Array = NDArray[np.float64]


def tilted(loss: Array, target: float) -> Array:
    """Weights (n,) proportional to exp(a loss), of mean 1, whose weighted mean loss is ``target`` (nats).

    Undefined where the target lies outside the losses (n,), or is not known.
    """
    if not loss.size or not np.isfinite(target):
        raise Undefined("no token has a loss")
    low, high = float(loss.min()), float(loss.max())
    if low < high and low < target < high:
        scaled = (loss - target) / (high - low)
        return _weights(scaled, _slope(scaled))
    if low == high == target:
        return np.ones(loss.size)
    raise Undefined(
        f"a mean loss of {target:.4g}, that of all buckets, is outside this bucket's {low:.4g} to {high:.4g}"
    )


def effective(weights: Array) -> float:
    """Kish's effective number of rows, (sum w)^2 / sum w^2, of weights (n,); at most n."""
    return float(weights.sum() ** 2 / np.square(weights).sum()) if weights.size else 0.0


def _weights(scaled: Array, slope: float) -> Array:
    raw = np.exp(slope * scaled - (slope * scaled).max())
    return np.asarray(raw / raw.mean())


def _slope(scaled: Array) -> float:
    """The a for which the weighted mean of ``scaled`` (n,) is zero: it rises with a, so there is one."""

    def mean(slope: float) -> float:
        return float(_weights(scaled, slope) @ scaled)

    reach = 1.0
    while mean(-reach) > 0 or mean(reach) < 0:
        reach *= 2
        if reach > 1e6:
            raise Undefined("the mean loss of all buckets is reached by single tokens of this bucket only")
    return float(brentq(mean, -reach, reach, xtol=1e-12, rtol=1e-14))
