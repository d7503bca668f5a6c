"""Bootstrap intervals of energy fractions, with whole sequences as the unit that is drawn.

Percentile bootstrap of a ratio of sums (Efron 1979, for clusters); one set of resamples serves every basis and rank.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.seeding import generator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Resampled:
    """Energy in the first j + 1 components of each basis in each resample, fractions[basis] (R, K).

    ``missing`` says why there are none, or nothing.
    """

    fractions: tuple[Array, ...]
    confidence: float
    missing: str = ""

    def interval(self, index: int, rank: int) -> tuple[float, float]:
        """Percentile bounds of the energy of basis ``index`` at ``rank``; NaN where there are no resamples."""
        if self.missing:
            return np.nan, np.nan
        tail = (1 - self.confidence) / 2
        lo, hi = np.quantile(self.fractions[index][:, rank - 1], [tail, 1 - tail])
        return float(lo), float(hi)


def resampled(
    rows: Array,
    sequence: NDArray[np.integer],
    bases: Sequence[Array],
    centred: bool,
    spec: Mapping[str, Any],
) -> Resampled:
    """Draw sequences with replacement and recompute energies of rows (n, d) in each basis (d, K).

    Sums of squares by sequence are exact sufficient statistics: the rows are read once. If the energy is
    centred, each resample is centred at its own mean. Every number is a share of a total, 0 to 1.
    """
    unique, label = np.unique(sequence, return_inverse=True)
    if unique.size < 2:
        return Resampled((), float(spec["confidence"]), "no interval: all rows are from one sequence")
    draws = _counts(unique.size, spec)
    size = np.bincount(label, minlength=unique.size).astype(np.float64)
    sums = _by_sequence(rows, label, unique.size)
    weight = (draws @ size)[:, None]
    mean = draws @ sums / weight if centred else np.zeros((len(draws), rows.shape[1]))
    squares = draws @ _by_sequence(np.einsum("ij,ij->i", rows, rows)[:, None], label, unique.size)
    total = squares - weight * np.einsum("ij,ij->i", mean, mean)[:, None]
    fractions = []
    for vectors in bases:
        inside = draws @ _by_sequence(np.square(rows @ vectors), label, unique.size)
        inside -= weight * np.square(mean @ vectors)
        fractions.append(np.cumsum(inside, axis=1) / np.where(total > 0, total, np.nan))
    return Resampled(tuple(fractions), float(spec["confidence"]))


def _counts(sequences: int, spec: Mapping[str, Any]) -> Array:
    """How often each sequence is in each resample, (R, S)."""
    rng = generator(spec["seed"], "bootstrap", "sequence", sequences)
    return rng.multinomial(sequences, np.full(sequences, 1 / sequences), size=spec["resamples"]).astype(np.float64)


def _by_sequence(values: Array, label: NDArray[np.intp], sequences: int) -> Array:
    """Sums of values (n, c) a sequence, (S, c)."""
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(sequences))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))
