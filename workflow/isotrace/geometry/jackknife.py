"""Delete-a-group jackknife over sequences: bias correction, and intervals under dependence within a sequence.

Quenouille 1956 and Tukey 1958; whole sequences as the unit because the rows of one are not independent (our choice).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A value with its interval, all NaN where undefined."""

    value: float
    lo: float
    hi: float


@dataclass(frozen=True)
class Jackknife:
    """The plain estimate and the bias-corrected one, with the same standard error."""

    plain: Estimate
    corrected: Estimate
    margin: float


def group_labels(sequence: NDArray[np.integer], groups: int) -> NDArray[np.intp]:
    """Label each row (n,) by one of ``groups`` equal runs of sequences, fewer if there are fewer sequences."""
    unique, index = np.unique(sequence, return_inverse=True)
    return np.asarray(index * min(groups, unique.size) // unique.size, np.intp)


def corrected(values: Array) -> Array:
    """G theta - (G - 1) mean of replicates; values (..., 1 + G), the whole first, -> (...)."""
    groups = values.shape[-1] - 1
    return np.asarray(groups * values[..., 0] - (groups - 1) * values[..., 1:].mean(axis=-1))


def margins(replicates: Array, confidence: float) -> Array:
    """Half the width (...) of intervals from replicates (G, ...), each with one of G >= 2 groups left out."""
    groups = len(replicates)
    error = np.sqrt((groups - 1) / groups * ((replicates - replicates.mean(axis=0)) ** 2).sum(axis=0))
    return np.asarray(stdtrit(groups - 1, (1 + confidence) / 2) * error)


def jackknife(values: Array, confidence: float) -> Jackknife:
    """Estimates from values (1 + G,): the whole, then each with one group left out.

    The margin is Student's quantile with G - 1 degrees of freedom times the jackknife standard error.
    """
    margin = float(margins(values[1:], confidence))
    whole, better = float(values[0]), float(corrected(values))
    return Jackknife(
        Estimate(whole, whole - margin, whole + margin), Estimate(better, better - margin, better + margin), margin
    )
