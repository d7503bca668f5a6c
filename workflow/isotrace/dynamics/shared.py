"""Whether the cells of a run move together, so that counting them apart would count each run many times.

Intraclass correlation, two-way and of consistency, with its F interval: McGraw and Wong 1996; design effect: Kish 1965.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from isotrace.dynamics.contrasts import early_minus_late
from isotrace.dynamics.rows import Family, Row
from isotrace.dynamics.series import Series
from isotrace.dynamics.trends import theil_sen_slope

Float = NDArray[np.float64]
METHOD = "two-way intraclass correlation of consistency, F interval; a cell is a site and bucket"
NO_P = "an interval and no p-value: a diagnosis of the units, not a hypothesis of the family"


@dataclass(frozen=True)
class Agreement:
    """Mean correlation between two cells of a run and its interval; NaN where it cannot be had."""

    value: float
    lo: float
    hi: float


def intraclass_correlation(values: Float, *, confidence: float) -> Agreement:
    """Correlation of the cells of a run over runs; values (runs, cells), each cell's own mean taken out.

    1 where all cells of a run deviate alike, 0 where they know nothing of each other, at least -1/(cells - 1). NaN
    for fewer than two runs or cells, or where nothing varies. The interval supposes normal deviations.
    """
    from scipy.special import fdtri

    r, m = values.shape
    if r < 2 or m < 2:
        return Agreement(np.nan, np.nan, np.nan)
    apart = values - values.mean(axis=0)
    runs = apart.mean(axis=1)
    between = m * float(np.sum(runs**2)) / (r - 1)
    inside = float(np.sum((apart - runs[:, None]) ** 2)) / ((r - 1) * (m - 1))
    scale = float(np.sum(values**2)) * np.finfo(np.float64).eps
    if between + inside <= scale:
        return Agreement(np.nan, np.nan, np.nan)
    if inside <= scale:
        return Agreement(1.0, 1.0, 1.0)
    ratio, upper = between / inside, 0.5 + confidence / 2
    low = ratio / fdtri(r - 1, (r - 1) * (m - 1), upper)
    high = ratio * fdtri((r - 1) * (m - 1), r - 1, upper)
    return Agreement(*(float((f - 1) / (f + m - 1)) for f in (ratio, low, high)))


def design_effect(correlation: float, cells: int) -> float:
    """How many times the variance of a mean over ``cells`` exceeds that of independent ones: 1 + (m - 1) ICC."""
    return 1 + (cells - 1) * correlation


def _level(series: Series) -> float:
    return float(series.value.mean())


def _contrast(series: Series) -> float:
    return float(early_minus_late(series.value, series.phase))


def _slope(series: Series) -> float:
    return float(theil_sen_slope(series.x, series.value))


REDUCED: dict[str, Callable[[Series], float]] = {
    "intraclass_correlation": _level,
    "intraclass_correlation_early_late": _contrast,
    "intraclass_correlation_slope": _slope,
}


def _by_run(series: list[Series], of: Callable[[Series], float]) -> Float:
    """One number a run and cell (runs, cells), of the cells that every run has; no cells where one has no number."""
    found: dict[str, dict[tuple[str, str], float]] = {}
    for s in series:
        found.setdefault(s.model, {})[s.site, s.bucket] = of(s)
    cells = sorted(set.intersection(*({c for c, x in run.items() if np.isfinite(x)} for run in found.values())))
    return np.array([[run[c] for c in cells] for run in found.values()]).reshape(len(found), len(cells))


def _note(found: Agreement, runs: int, cells: int) -> str:
    if not np.isfinite(found.value):
        few = f"{runs} runs with {cells} common cells: two of each are needed"
        return few if min(runs, cells) < 2 else "no cell varies over runs"
    effect = f"design effect {design_effect(found.value, cells):.3g} over {cells} cells"
    if found.lo > 0:
        return f"shared run effect: {effect}, so cells of a run are not units of a test; {NO_P}"
    return f"no shared run effect seen: {effect}; {NO_P}"


def shared_run(family: Family) -> list[Row]:
    """How alike the cells of a run are in level, early minus late, and slope; flagged where the interval is above 0."""
    rows = []
    for group, models in family.groups().items():
        for statistic, of in REDUCED.items():
            values = _by_run([s for s in family.series if s.model in models], of)
            found = intraclass_correlation(values, confidence=family.confidence)
            row = Row(
                family=family.name, test="shared_run", unit="run", model=group, site="all", bucket="all",
                quantity=family.quantity, statistic=statistic, effect=found.value, lo=found.lo, hi=found.hi,
                n=len(values), method=METHOD, note=_note(found, *values.shape),
            )  # fmt: skip
            rows.append(row)
    return rows
