"""How much more energy a basis holds of rows that it was fitted on than of held-out rows.

The optimism of Efron 1986 for energies; sequences of both splits are resampled apart, as the splits share none.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.energy import energy_fraction
from isotrace.geometry.energy_interval import Resampled
from isotrace.geometry.energy_operators import Absent, Operator
from isotrace.seeding import derived_seed

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Optimism:
    """Energy on fit rows minus energy on evaluation rows, -1 to 1, with its interval; NaN with the reason."""

    value: float = np.nan
    lo: float = np.nan
    hi: float = np.nan
    reason: str = ""


def fit_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The spec for operators of fit rows: their sequences are resampled by draws of their own."""
    return {**spec, "seed": derived_seed(spec["seed"], "optimism")}


def optimism(fit: Operator | Absent, evaluation: Operator, vectors: Array, index: int) -> Optimism:
    """The optimism of vectors (d, k), the first k columns of basis ``index`` of both operators' replicates."""
    if isinstance(fit, Absent):
        return Optimism(reason=f"fit rows: {fit.reason}")
    value = energy_fraction(fit.matrix, vectors) - energy_fraction(evaluation.matrix, vectors)
    missing = fit.replicates.missing or evaluation.replicates.missing
    if missing:
        return Optimism(value, reason=missing)
    differences = fit.replicates.fractions[index] - evaluation.replicates.fractions[index]
    lo, hi = Resampled((differences,), evaluation.replicates.confidence).interval(0, vectors.shape[1])
    return Optimism(value, lo, hi, "" if np.isfinite(lo) else "a resample has no energy")
