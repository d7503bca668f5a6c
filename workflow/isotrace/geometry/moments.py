"""Mean, scatter and the third and fourth moments of rows, which merge and subtract exactly.

Chan, Golub and LeVeque 1979, extended to the moments that the U-statistic of Chen, Zhang, Zhong 2010 needs.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg.blas import dsyrk

from isotrace.errors import DataError

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Moments:
    """Sums over n rows of width d, with y a row minus the mean.

    mean (d,); scatter (d, d) = sum y y^T, a sum and not an average; q3 (d,) = sum |y|^2 y;
    q4 = sum |y|^4. Units: those of the rows, to the first, second, third and fourth power.
    """

    n: int
    mean: Array
    scatter: Array
    q3: Array
    q4: float

    @property
    def d(self) -> int:
        return int(self.mean.shape[0])

    @property
    def covariance(self) -> Array:
        """Covariance (d, d) with n - 1 below the line; DataError for fewer than two rows."""
        if self.n < 2:
            raise DataError(f"a covariance needs two rows, there are {self.n}")
        return self.scatter / (self.n - 1)

    @property
    def second_moment(self) -> Array:
        """Uncentred average of x x^T, (d, d); DataError without rows."""
        if self.n < 1:
            raise DataError("a second moment needs a row, there are none")
        return self.scatter / self.n + np.outer(self.mean, self.mean)


def moments(rows: ArrayLike) -> Moments:
    """Moments of rows (n, d), in float64 whatever the rows are stored in.

    Centred at the rows' own mean in two passes: raw sums lose every digit at mean 1000, sd 1.
    """
    values = np.asarray(rows, np.float64)
    n, d = values.shape
    if n == 0:
        return empty(d)
    mean = values.mean(axis=0)
    mean = mean + (values - mean).mean(axis=0)
    y = values - mean
    q = np.einsum("ij,ij->i", y, y)
    return Moments(n, mean, symmetric(add_gram(y)), q @ y, float(q @ q))


def add_gram(y: Array, lower: Array | None = None) -> Array:
    """y^T y of rows (n, d) in the lower triangle of (d, d), added in place to ``lower`` if it is Fortran-ordered.

    Half the products of a whole y^T y, which NumPy has no call for.
    """
    d = y.shape[1]
    into = np.zeros((d, d), order="F") if lower is None else lower
    total: Array = dsyrk(1.0, y.T, beta=1.0, c=into, lower=1, overwrite_c=1)
    return total


def symmetric(lower: Array) -> Array:
    """The whole matrix (d, d) of which ``lower`` holds the lower triangle."""
    whole: Array = np.tril(lower) + np.tril(lower, -1).T
    return whole


def from_sums(n: int, pivot: Array, first: Array, scatter: Array, q3: Array, q4: float) -> Moments:
    """Moments of n rows from their sums about a fixed ``pivot`` (d,), with z a row minus the pivot.

    first (d,) = sum z; scatter (d, d) = sum z z^T; q3 (d,) = sum |z|^2 z; q4 = sum |z|^4. No digits are lost while
    the pivot lies within some standard deviations of the mean, as the mean of a part of the rows does.
    """
    if n == 0:
        return empty(pivot.size)
    return _recentred(Moments(n, pivot, scatter, q3, q4), first / n)


def empty(d: int) -> Moments:
    """Moments of no rows of width d: the neutral element of ``merge``."""
    return Moments(0, np.zeros(d), np.zeros((d, d)), np.zeros(d), 0.0)


def merge(a: Moments, b: Moments) -> Moments:
    """Moments of the rows of ``a`` and ``b`` together."""
    n = a.n + b.n
    if a.n == 0 or b.n == 0:
        return b if a.n == 0 else a
    step = b.mean - a.mean
    mean = a.mean + step * (b.n / n)
    left, right = _about(a, step * (-b.n / n)), _about(b, step * (a.n / n))
    return Moments(n, mean, left.scatter + right.scatter, left.q3 + right.q3, left.q4 + right.q4)


def merge_all(parts: Iterable[Moments]) -> Moments:
    """Moments of the rows of all parts; DataError for no parts at all."""
    listed = list(parts)
    if not listed:
        raise DataError("no moments to merge")
    return reduce(merge, listed)


def drop(total: Moments, part: Moments) -> Moments:
    """Moments of the rows of ``total`` without those of ``part``, which must be among them."""
    n = total.n - part.n
    if n < 0:
        raise DataError(f"cannot take {part.n} rows out of {total.n}")
    if n == 0:
        return empty(total.d)
    if part.n == 0:
        return total
    step = part.mean - total.mean
    inside = _about(part, step)
    away = step * (-part.n / n)
    rest = Moments(n, total.mean, total.scatter - inside.scatter, total.q3 - inside.q3, total.q4 - inside.q4)
    return _recentred(rest, away)


def _about(m: Moments, shift: Array) -> Moments:
    """The sums of ``m`` about its mean - shift, that is, of y + shift; ``mean`` then holds that centre."""
    square = float(shift @ shift)
    trace = float(np.trace(m.scatter))
    pull = m.scatter @ shift
    scatter = m.scatter + m.n * np.outer(shift, shift)
    q3 = m.q3 + 2 * pull + (trace + m.n * square) * shift
    q4 = m.q4 + 4 * float(shift @ pull) + 4 * float(shift @ m.q3) + 2 * square * trace + m.n * square**2
    return Moments(m.n, m.mean - shift, scatter, q3, q4)


def _recentred(m: Moments, shift: Array) -> Moments:
    """The inverse of ``_about``: from sums of y + shift to sums of y."""
    square = float(shift @ shift)
    scatter = m.scatter - m.n * np.outer(shift, shift)
    trace = float(np.trace(scatter))
    pull = scatter @ shift
    q3 = m.q3 - 2 * pull - (trace + m.n * square) * shift
    q4 = m.q4 - 4 * float(shift @ pull) - 4 * float(shift @ q3) - 2 * square * trace - m.n * square**2
    return Moments(m.n, m.mean + shift, scatter, q3, q4)
