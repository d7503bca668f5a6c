"""Rows of one site and quantity, with the sums that several measures share, and their error by jackknife.

The delete-a-group jackknife over sequences is our choice: rows of one sequence are not independent.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.contact_controls import Stated, controlled_contact
from isotrace.geometry.contact_gradient import GradientContact, gradient_contact
from isotrace.geometry.spectrum import clean, spectrum
from isotrace.geometry.undefined import Undefined

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Interval:
    """lo <= value <= hi, or NaN with the reason why there is none."""

    lo: float = float("nan")
    hi: float = float("nan")
    reason: str = ""


@dataclass(frozen=True)
class Cloud:
    """What a measure may read: rows (n, d), the sequence (n,) of each, and what the table gave along.

    tangent (d, k) or None with ``tangent_missing`` saying why; places (n, d): the activations that rows of
    gradients belong to, None for activations themselves; zero_rows: rows left out because they
    are exactly zero; max_rows: the most rows that a measure in O(n^2) may take.
    """

    values: Float
    sequence: NDArray[np.integer]
    seed: int
    max_rows: int
    rank: int = 1
    zero_rows: int = 0
    tangent: Float | None = None
    tangent_missing: str = ""
    places: Float | None = None
    whole: "Cloud | None" = None
    left_out: Float | None = None

    @property
    def n(self) -> int:
        return int(self.values.shape[0])

    @property
    def d(self) -> int:
        return int(self.values.shape[1])

    @cached_property
    def mean(self) -> Float:
        mean: Float = self.values.mean(axis=0)
        return mean

    @cached_property
    def scatter(self) -> Float:
        """Sum of (row - mean)(row - mean)^T, (d, d); of a deleted group by taking its part from the whole."""
        if self.whole is None or self.left_out is None:
            centred = self.values - self.mean
            return centred.T @ centred
        # about the whole's mean: small numbers whatever the offset, so the subtraction costs no digits
        part = self.left_out - self.whole.mean
        shift = part.sum(axis=0)
        return self.whole.scatter - part.T @ part - np.outer(shift, shift) / self.n

    @cached_property
    def covariance_spectrum(self) -> Float:
        """Falling eigenvalues (d,) of the covariance (ddof 1)."""
        return spectrum(self.scatter / (self.n - 1))

    @cached_property
    def second_moment(self) -> Float:
        """Sum of row row^T over n, (d, d), uncentred."""
        return self.scatter / self.n + np.outer(self.mean, self.mean)

    @cached_property
    def moment_spectrum(self) -> Float:
        """Falling eigenvalues (d,) of the uncentred second moment: squared singular values over n."""
        if self.whole is None:
            return clean(self.moment_eigen[0][::-1])
        return spectrum(self.second_moment)

    @cached_property
    def moment_eigen(self) -> tuple[Float, Float]:
        """Rising eigenvalues (d,) of the second moment and its eigenvectors (d, d) as columns."""
        values, vectors = np.linalg.eigh(self.second_moment)
        return values, vectors

    @cached_property
    def contact(self) -> Stated:
        """Contact order and curvature visibility at the medoid, each with the reason why it may not be stated."""
        return controlled_contact(self.values, rank=self.rank, seed=self.seed)

    @cached_property
    def gradient_contact(self) -> GradientContact:
        """Orders of the gradient's parts at the medoid of its places."""
        assert self.places is not None
        return gradient_contact(self.places, self.values, rank=self.rank, seed=self.seed)

    def without(self, group: NDArray[np.bool_]) -> "Cloud":
        """The cloud less the rows where ``group`` (n,) is true."""
        return Cloud(
            self.values[~group],
            self.sequence[~group],
            self.seed,
            self.max_rows,
            rank=self.rank,
            tangent=self.tangent,
            tangent_missing=self.tangent_missing,
            whole=self,
            left_out=self.values[group],
        )


def deleted_groups(cloud: Cloud, groups: int) -> Iterator[Cloud]:
    """The cloud less one group of sequences at a time; sequences are dealt to the groups in turn.

    As many clouds as groups, or as sequences where there are fewer. One at a time: together they would
    hold the rows ``groups`` times.
    """
    sequences, index = np.unique(cloud.sequence, return_inverse=True)
    dealt = index % max(min(groups, len(sequences)), 1)
    for group in range(min(groups, len(sequences))):
        yield cloud.without(dealt == group)


def jackknife(
    cloud: Cloud, measures: Mapping[str, Callable[[Cloud], float]], *, groups: int, confidence: float
) -> dict[str, Interval]:
    """Intervals value -+ t * jackknife standard error of several measures over the same deleted groups.

    t has (groups - 1) degrees of freedom. An interval that does not exist is NaN with its reason.
    """
    if len(np.unique(cloud.sequence)) < 2:
        return dict.fromkeys(measures, Interval(reason="no interval from one sequence"))
    deleted: dict[str, list[float]] = {name: [] for name in measures}
    failed: dict[str, Interval] = {}
    for part in deleted_groups(cloud, groups):
        for name, measure in measures.items():
            try:
                deleted[name].append(measure(part))
            except Undefined as undefined:
                failed[name] = Interval(reason=f"no interval: {undefined}")
    sound = {name: measure(cloud) for name, measure in measures.items() if name not in failed}
    return failed | {name: _interval(value, deleted[name], confidence) for name, value in sound.items()}


def _interval(value: float, deleted: list[float], confidence: float) -> Interval:
    from scipy.special import stdtrit

    groups = len(deleted)
    error = np.sqrt((groups - 1) * np.var(deleted))
    half = float(stdtrit(groups - 1, 0.5 + confidence / 2) * error)
    return Interval(value - half, value + half)
