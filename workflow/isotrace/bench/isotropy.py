"""Null draws of energy and of the removal test: sums that the draws share, against the algorithm as published.

Rudman et al. 2022 (IsoScore by eigenvalues), Bernas et al. 2026 (removal of matched-rank normals).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.bench.registry import Measured, Settings, bench
from isotrace.bench.timing import interleaved, median_ratio, rounded
from isotrace.errors import ConfigError, DataError
from isotrace.geometry.energy import complement_null
from isotrace.geometry.removal import Cloud, cloud, first_frames, outside, without
from isotrace.geometry.scores import ablated
from isotrace.seeding import generator

Array = NDArray[np.float64]
EQUAL = 1e-6
GROUPS = 20
SPEC: dict[str, Any] = {"estimators": ["plugin"], "c0": [], "groups": GROUPS, "confidence": 0.95}


@bench(
    "isotropy",
    compared="seconds a draw of energy and plug-in ablation: projection matrices and eigenvalues, as published / ours",
    wanted="at least 100",
    sizes={"rows": 2048, "width": 1024, "rank": 32, "draws": 1000, "published_draws": 20},
)
def isotropy(settings: Settings) -> Measured:
    """The ratio a draw, everything from the rows on included; DataError if the two do not agree on the same draws.

    Every pair has a seed of its own, so that no draw is already there from the pair before.
    """
    size = settings.sizes
    if 2 * size["rank"] > size["width"] or size["rows"] < 2:
        raise ConfigError("bench isotropy --size: rank may be half of width at most, rows at least 2")
    rows, tangent = _rows_and_tangent(size["rows"], size["width"], size["rank"])
    difference = _largest_difference(rows, tangent, size["published_draws"])
    if not difference <= EQUAL:
        raise DataError(f"bench isotropy: ours and the published algorithm differ by {difference:.1e}, not {EQUAL}")
    times = interleaved(
        lambda i: ours(rows, tangent, size["draws"], i),
        lambda i: published(rows, normals(tangent, size["published_draws"], i)),
        settings.pairs,
    )
    a_draw = [t / size["draws"] for t in times.ours], [t / size["published_draws"] for t in times.baseline]
    details = {
        "seconds_a_draw": rounded(float(np.median(a_draw[0]))),
        "seconds_a_draw_published": rounded(float(np.median(a_draw[1]))),
        "largest_relative_difference": rounded(difference),
    }
    return Measured(rounded(median_ratio(a_draw[1], a_draw[0])), details)


def ours(rows: Array, tangent: Array, draws: int, seed: int) -> tuple[Array, Array]:
    """Energies (B,) of normals to tangent (d, k), and IsoScores (B,) in d dimensions of rows (n, d) without them."""
    c = _cloud(rows)
    energies = complement_null(c.covariance, tangent, draws, seed).draws
    spec = SPEC | {"draws": draws, "seed": seed}
    scores = ablated(c, without(c, tangent), tangent, "complement", spec, None)["plugin", ""].normals(rows.shape[1])
    return energies, scores


def published(rows: Array, frames: Array) -> tuple[Array, Array]:
    """The same of frames (B, d, k), one at a time: a projection matrix, projected rows, their eigenvalues."""
    centred = rows - rows.mean(axis=0)
    whole = np.vdot(centred, centred)
    energies, scores = [], []
    for frame in frames:
        projector = frame @ frame.T
        inside = centred @ projector
        energies.append(np.vdot(inside, inside) / whole)
        scores.append(_published_isoscore(np.linalg.eigvalsh(np.cov(centred - inside, rowvar=False))))
    return np.asarray(energies), np.asarray(scores)


def _published_isoscore(eigenvalues: Array) -> float:
    """Rudman et al. 2022, algorithm 1, from the variances (d,) along principal axes."""
    d = eigenvalues.size
    normalised = eigenvalues * np.sqrt(d) / np.linalg.norm(eigenvalues)
    defect = np.linalg.norm(normalised - 1) / np.sqrt(2 * (d - np.sqrt(d)))
    return float(((d - defect**2 * (d - np.sqrt(d))) ** 2 - d) / (d * (d - 1)))


def normals(tangent: Array, draws: int, seed: int) -> Array:
    """Random frames (B, d, k) orthogonal to tangent (d, k)."""
    d, k = tangent.shape
    drawn = generator(seed, "bench", "normals").standard_normal((draws, d, k))
    return np.asarray(np.linalg.qr(drawn - tangent @ (tangent.T @ drawn))[0])


def _rows_and_tangent(n: int, d: int, k: int) -> tuple[Array, Array]:
    """Rows (n, d) with variances 1/i along the axes, and the k axes of largest variance."""
    rows = generator(0, "bench", "rows").standard_normal((n, d)) * np.arange(1, d + 1) ** -0.5
    return rows, np.eye(d)[:, :k]


def _cloud(rows: Array) -> Cloud:
    """The rows as one sequence: without the jackknife, whose intervals the published algorithm does not have."""
    return cloud(rows, np.zeros(len(rows), np.int64), GROUPS)


def _largest_difference(rows: Array, tangent: Array, draws: int) -> float:
    """Largest relative difference of an energy or a score between the two, on the same draws."""
    c = _cloud(rows)
    frames = first_frames(outside(c.covariance, tangent), tangent.shape[1], draws, 0)
    pairs = zip(ours(rows, tangent, draws, 0), published(rows, frames), strict=True)
    return max(float(np.abs(a / b - 1).max()) for a, b in pairs)
