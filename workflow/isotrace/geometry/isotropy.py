"""IsoScore of a covariance: plug-in, shrunk (star), unbiased in its denominator (ustat), and bias-corrected.

Rudman et al. 2022; Rudman and Eickhoff 2024 (star); Chen, Zhang, Zhong 2010 (U-statistic of tr Sigma^2).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.jackknife import Estimate, group_labels, jackknife
from isotrace.geometry.moments import Moments, drop, moments

Array = NDArray[np.float64]
LEAST_CORRECTED = 32
"""Rows below which no correction was measured to be within 4 %."""
C0 = ("scaled_identity", "identity", "ledoit_wolf", "pooled")


@dataclass(frozen=True)
class Sums:
    """What a score reads of a covariance C, each of one shape: whole, replicates or draws.

    n rows; trace = tr C; frobenius = ||C||_F^2; ustat, unbiased for tr Sigma^2 (not positive in small samples);
    square, unbiased for (tr Sigma)^2; q4 = sum |y|^4. Units: rows squared for the trace, to the fourth for the rest.
    """

    n: Array
    trace: Array
    frobenius: Array
    ustat: Array
    square: Array
    q4: Array

    def unbiased(self, dims: int) -> Array:
        """IsoScore in ``dims`` dimensions as a ratio of two U-statistics; NaN where the denominator is not positive."""
        return _ratio(self.square, self.ustat, dims)


def sums(n: ArrayLike, trace: ArrayLike, frobenius: ArrayLike, q4: ArrayLike) -> Sums:
    """Sums from those of the scatter: tr S, ||S||_F^2 and sum |y|^4, arrays of one shape."""
    n, trace, frobenius, q4 = (np.asarray(x, np.float64) for x in (n, trace, frobenius, q4))
    ustat, square = frobenius_ustat(n, trace, frobenius, q4), square_ustat(n, trace, frobenius, q4)
    return Sums(n, trace / (n - 1), frobenius / (n - 1) ** 2, ustat, square, q4)


def sums_of(m: Moments) -> Sums:
    """Sums of one set of rows."""
    return sums(m.n, np.trace(m.scatter), np.square(m.scatter).sum(), m.q4)


def frobenius_ustat(n: Array, trace: Array, frobenius: Array, q4: Array) -> Array:
    """U-statistic of tr Sigma^2 from sums over centred rows; NaN for fewer than four rows."""
    pairs = frobenius - q4
    triples = q4 - pairs
    quadruples = trace**2 - 2 * pairs - 4 * triples
    n = np.where(n >= 4, n, np.nan)
    two = n * (n - 1)
    three = two * (n - 2)
    return np.asarray(pairs / two - 2 * triples / three + quadruples / (three * (n - 3)))


def square_ustat(n: Array, trace: Array, frobenius: Array, q4: Array) -> Array:
    """U-statistic of (tr Sigma)^2: |x_1 - x_2|^2 |x_3 - x_4|^2 / 4 over distinct rows; NaN for fewer than four."""
    n = np.where(n >= 4, n, np.nan)
    total = trace**2 * (n**2 - 3 * n + 1) - n * (n - 1) * q4 + 2 * frobenius
    return np.asarray(total / (n * (n - 1) * (n - 2) * (n - 3)))


def isoscore(trace: ArrayLike, frobenius: ArrayLike, dims: int) -> Array:
    """(t^2/f - 1)/(dims - 1): 1 where all directions vary alike, 0 for one direction; NaN where undefined."""
    return _ratio(np.asarray(trace) ** 2, np.asarray(frobenius, np.float64), dims)


def _ratio(square: Array, f: Array, dims: int) -> Array:
    return np.asarray((square / np.where(f > 0, f, np.nan) - 1) / (dims - 1 if dims > 1 else np.nan))


def isoscore_plugin(m: Moments) -> float:
    """The published IsoScore, 0 to 1: eigenvalues enter through tr C and ||C||_F only."""
    s = sums_of(m)
    return float(isoscore(s.trace, s.frobenius, m.d))


def isoscore_ustat(m: Moments) -> float:
    """IsoScore with an unbiased denominator; may exceed 1, NaN where the denominator is not positive."""
    s = sums_of(m)
    return float(isoscore(s.trace, s.ustat, m.d))


def isoscore_star(m: Moments, *, c0: str, shrinkage: float, pooled: Array | None = None) -> float:
    """IsoScore of (1 - z) C + z C0; ``pooled`` (d, d) is C0 where c0 says so; ledoit_wolf finds z itself."""
    if c0 == "pooled":
        if pooled is None:
            raise ConfigError("isotropy.c0: pooled needs the covariance over all buckets")
        mixed = (1 - shrinkage) * m.covariance + shrinkage * pooled
        return float(isoscore(np.trace(mixed), np.square(mixed).sum(), m.d))
    s = sums_of(m)
    return float(isoscore(*shrunk(s, target_scale(s, c0, m.d), star_weight(s, c0, shrinkage, m.d), m.d), m.d))


def isoscore_corrected(rows: ArrayLike, sequence: ArrayLike, *, groups: int, confidence: float) -> Estimate:
    """Jackknife-corrected ratio of two U-statistics from rows (n, d), leaving out groups of sequences (n,).

    The ratio of two unbiased estimates is biased; NaN where any replicate's denominator is not positive, and for fewer
    than ``LEAST_CORRECTED`` rows.
    """
    values = np.asarray(rows, np.float64)
    if len(values) < LEAST_CORRECTED:
        return Estimate(np.nan, np.nan, np.nan)
    label = group_labels(np.asarray(sequence), groups)
    total = moments(values)
    replicates = [total, *(drop(total, moments(values[label == g])) for g in range(int(label.max()) + 1))]
    scores = [float(sums_of(m).unbiased(m.d)) for m in replicates]
    return jackknife(np.asarray(scores), confidence).corrected


def target_scale(s: Sums, c0: str, dims: int) -> Array:
    """The s of a target C0 = s I, of the shape of ``s``."""
    if c0 in ("scaled_identity", "ledoit_wolf"):
        return np.asarray(s.trace / dims)
    if c0 == "identity":
        return np.ones_like(s.trace)
    raise ConfigError(f"isotropy.c0: {c0!r} is not one of {', '.join(C0)}")


def star_weight(s: Sums, c0: str, shrinkage: float, dims: int) -> Any:
    """The weight z of C0: the configured one, or Ledoit and Wolf's 2004 estimate."""
    if c0 != "ledoit_wolf":
        return shrinkage
    f = s.frobenius * ((s.n - 1) / s.n) ** 2
    t = s.trace * (s.n - 1) / s.n
    noise = (s.q4 / s.n - f) / s.n
    distance = f - t**2 / dims
    return np.clip(noise / np.where(distance > 0, distance, np.nan), 0, 1)


def shrunk(s: Sums, scale: ArrayLike, z: Any, dims: int) -> tuple[Array, Array]:
    """tr and ||.||_F^2 of (1 - z) C + z scale I on ``dims`` dimensions."""
    scale = np.asarray(scale)
    trace = (1 - z) * s.trace + z * scale * dims
    frobenius = (1 - z) ** 2 * s.frobenius + 2 * z * (1 - z) * scale * s.trace + (z * scale) ** 2 * dims
    return np.asarray(trace), np.asarray(frobenius)
