"""Intervals of energy fractions: of rows by a bootstrap of sequences, of moments by a jackknife over their groups.

Percentile bootstrap of a ratio of sums (Efron 1979, for clusters), one set of resamples for every basis and rank;
delete-a-group jackknife (Tukey 1958) where rows were summed by group and not kept.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.jackknife import jackknife
from isotrace.geometry.moments import Moments
from isotrace.seeding import generator

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Replicates(ABC):
    """Energy in the first j + 1 components of each basis in each replicate, fractions[basis] (R, K).

    ``missing`` says why there are none, or nothing.
    """

    fractions: tuple[Array, ...]
    confidence: float
    missing: str = ""

    def interval(self, index: int, rank: int) -> tuple[float, float]:
        """Bounds of the energy of basis ``index`` at ``rank``; NaN where there are no replicates."""
        return self._interval(index, slice(rank - 1, rank))

    def mean_interval(self, index: int) -> tuple[float, float]:
        """Bounds of the mean over all ranks of the energy of basis ``index``; NaN where there are no replicates."""
        return self._interval(index, slice(None))

    def _interval(self, index: int, ranks: slice) -> tuple[float, float]:
        if self.missing:
            return np.nan, np.nan
        lo, hi = self._bounds(self.fractions[index][:, ranks].mean(axis=1))
        return float(lo), float(hi)

    @abstractmethod
    def _bounds(self, values: Array) -> Array:
        """Lower and upper bound (2,) from replicates (R,)."""


class Resampled(Replicates):
    """Replicates are resamples, bounds their percentiles."""

    def _bounds(self, values: Array) -> Array:
        tail = (1 - self.confidence) / 2
        return np.asarray(np.quantile(values, [tail, 1 - tail]))


class LeftOut(Replicates):
    """Replicates are the whole, then each group left out (1 + G,); bounds are Student's, cut at 0 and 1."""

    def _bounds(self, values: Array) -> Array:
        found = jackknife(values, self.confidence).plain
        return np.clip([found.lo, found.hi], 0, 1)


@dataclass(frozen=True)
class _Clusters:
    """Sums over the rows of S clusters, which are sufficient for their energies.

    size (S,); sums (S, d) of rows; squares (S, 1) of their norms; inside[basis] (S, K) of their squared coordinates.
    """

    size: Array
    sums: Array
    squares: Array
    inside: Sequence[Array]

    def fractions(self, draws: Array, bases: Sequence[Array], centred: bool, least: float = 0) -> tuple[Array, ...]:
        """Energies (R, K) in each basis of clusters taken ``draws`` (R, S) times; NaN of a total up to ``least``."""
        weight = (draws @ self.size)[:, None]
        mean = draws @ self.sums / weight if centred else np.zeros((len(draws), self.sums.shape[1]))
        total = draws @ self.squares - weight * np.einsum("ij,ij->i", mean, mean)[:, None]
        found = []
        for vectors, sums in zip(bases, self.inside, strict=True):
            inside = draws @ sums
            inside -= weight * np.square(mean @ vectors)
            found.append(np.cumsum(inside, axis=1) / np.where(total > least, total, np.nan))
        return tuple(found)


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
    clusters = _Clusters(
        np.bincount(label, minlength=unique.size).astype(np.float64),
        _by_sequence(rows, label, unique.size),
        _by_sequence(np.einsum("ij,ij->i", rows, rows)[:, None], label, unique.size),
        [_by_sequence(np.square(rows @ vectors), label, unique.size) for vectors in bases],
    )
    draws = _counts(unique.size, int(spec["seed"]), int(spec["resamples"]))
    return Resampled(clusters.fractions(draws, bases, centred), float(spec["confidence"]))


def left_out(
    whole: Moments, groups: Iterable[Moments], bases: Sequence[Array], centred: bool, spec: Mapping[str, Any]
) -> LeftOut:
    """Leave each group of rows out of ``whole`` and recompute energies in each basis (d, K).

    Groups are taken one at a time and only sums of them kept; those without a row do not count. If the energy is
    centred, the rows that are left are centred at their own mean.
    """
    # About the mean of all rows, sums of groups far from zero keep their digits.
    centre = whole.mean if centred else np.zeros(whole.d)
    parts = [_cluster(group, centre, bases) for group in groups if group.n > 0]
    if len(parts) < 2:
        return LeftOut((), float(spec["confidence"]), "no interval: all rows are from one group of sequences")
    clusters = _Clusters(
        np.concatenate([part.size for part in parts]),
        np.concatenate([part.sums for part in parts]),
        np.concatenate([part.squares for part in parts]),
        [np.concatenate(inside) for inside in zip(*(part.inside for part in parts), strict=True)],
    )
    # Sums of the groups that are left, not differences: rows that are all alike then have a total of rounding only.
    rest = clusters.fractions(1 - np.eye(len(parts)), bases, centred, 1e-12 * float(clusters.squares.sum()))
    every = _cluster(whole, centre, bases).fractions(np.ones((1, 1)), bases, centred)
    return LeftOut(tuple(np.vstack(pair) for pair in zip(every, rest, strict=True)), float(spec["confidence"]))


def _cluster(group: Moments, centre: Array, bases: Sequence[Array]) -> _Clusters:
    """One cluster, of a group's rows minus ``centre`` (d,)."""
    n, step = group.n, group.mean - centre
    inside = [np.einsum("dk,dk->k", v, group.scatter @ v) + n * np.square(step @ v) for v in bases]
    square = np.trace(group.scatter) + n * (step @ step)
    return _Clusters(np.array([float(n)]), n * step[None], np.array([[square]]), [found[None] for found in inside])


@lru_cache(maxsize=4)
def _counts(sequences: int, seed: int, resamples: int) -> Array:
    """How often each sequence is in each resample, (R, S), the same for every site and quantity."""
    rng = generator(seed, "bootstrap", "sequence", sequences)
    drawn = rng.multinomial(sequences, np.full(sequences, 1 / sequences), size=resamples).astype(np.float64)
    drawn.flags.writeable = False
    return drawn


def _by_sequence(values: Array, label: NDArray[np.intp], sequences: int) -> Array:
    """Sums of values (n, c) a sequence, (S, c)."""
    order = np.argsort(label, kind="stable")
    starts = np.searchsorted(label[order], np.arange(sequences))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))
