"""One row of the dynamics table, and what every test of a family needs to know.

The layout is the public contract (our choice).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from isotrace.dynamics.contrasts import MIN_RUNS, RunTest, across_runs
from isotrace.dynamics.series import Series
from isotrace.seeding import generator

Float = NDArray[np.float64]
WITHIN_RUN = "one run: an effect size, no population p-value"
SIMULATED = "interval: checkpoints' own sequence-resampling errors, drawn independently"
RANK_STATISTICS = ("kendall_tau", "bucket_order", "spearman")


@dataclass(frozen=True)
class Family:
    """The series of one family and how its intervals are made.

    ``objective`` is of each model, clm or mlm; ``runs`` names the group of those models that are its runs.
    """

    name: str
    quantity: str
    log: bool
    series: list[Series]
    seed: int
    resamples: int
    confidence: float
    objective: Mapping[str, str]
    runs: Mapping[str, str] = field(default_factory=dict)

    def rng(self, *labels: str) -> np.random.Generator:
        """A generator of one test's own."""
        return generator(self.seed, "dynamics", self.name, *labels)

    def over_runs(self, effects: Sequence[float], rng: np.random.Generator) -> RunTest:
        """Signed-rank test of one effect a run."""
        return across_runs(effects, rng, confidence=self.confidence)

    def interval(self, effect: float, drawn: Float, statistic: str) -> tuple[float, float]:
        """Interval of redrawn effects (n,), recentred at the effect; those that could not be computed are left out.

        Noise on noise pulls rank statistics toward zero, so that plain percentiles could exclude the effect itself.
        """
        tail = (1 - self.confidence) / 2
        lo, middle, hi = np.nanquantile(drawn, [tail, 0.5, 1 - tail])
        limit = 1.0 if statistic in RANK_STATISTICS else np.inf
        return max(-limit, effect + float(lo - middle)), min(limit, effect + float(hi - middle))

    def groups(self) -> dict[str, list[str]]:
        """Models whose runs are tested together: each group of runs, each objective, all models.

        A pool that holds the same models as one before it is left out: it would be the same test again.
        """
        models = sorted({s.model for s in self.series})
        pools: dict[str, list[str]] = {}
        for names in (self.runs, self.objective, dict.fromkeys(models, "all")):
            named: dict[str, list[str]] = {}
            for model in models:
                if model in names:
                    named.setdefault(names[model], []).append(model)
            pools |= {name: found for name, found in named.items() if found not in pools.values()}
        return pools


@dataclass(frozen=True)
class Row:
    """A row of the table; ``model`` is a model, or the group of models that an across-run test pools."""

    family: str
    test: str
    unit: str
    model: str
    site: str
    bucket: str
    quantity: str
    statistic: str
    effect: float
    n: int
    method: str
    note: str
    lo: float = np.nan
    hi: float = np.nan
    p_min: float = np.nan
    p_value: float = np.nan
    p_adjusted: float = np.nan

    def plain(self) -> dict[str, object]:
        return asdict(self)


def within_run(
    family: Family,
    test: str,
    statistic: str,
    series: Series,
    of: Callable[[Float], Float],
    *,
    method: str,
    too_few: str = "",
    resamples: int | None = None,
) -> Row:
    """The effect of one run with its interval: ``of`` maps values (..., c) to effects (...).

    Without intervals at the checkpoints, or without enough of them, lo and hi are missing and the note says why.
    """
    effect = float(of(series.value[None])[0])
    notes = [WITHIN_RUN]
    lo = hi = np.nan
    if not np.isfinite(effect):
        notes.append(too_few or "the series is constant or too short")
    elif not series.has_interval:
        notes.append("no interval: the checkpoints carry none")
    else:
        rng = family.rng(test, statistic, series.model, series.site, series.bucket)
        drawn = of(series.draws(resamples or family.resamples, rng, confidence=family.confidence))
        lo, hi = family.interval(effect, drawn, statistic)
        method = f"{method}; {SIMULATED}"
    return Row(
        family=family.name, test=test, unit="sequence", model=series.model, site=series.site, bucket=series.bucket,
        quantity=family.quantity, statistic=statistic, effect=effect, lo=lo, hi=hi, n=len(series.step),
        method=method, note="; ".join(notes),
    )  # fmt: skip


def across_run(family: Family, test: str, statistic: str, group: str, result: RunTest, *, method: str) -> Row:
    """A test with runs as the unit; below five runs its note says that it has no p-value."""
    few = result.n < MIN_RUNS
    limit = 1.0 if statistic.removeprefix("mean_") in RANK_STATISTICS else np.inf
    lo, hi = np.clip([result.lo, result.hi], -limit, limit)
    return Row(
        family=family.name, test=test, unit="run", model=group, site="all", bucket="all", quantity=family.quantity,
        statistic=statistic, effect=result.effect, lo=float(lo), hi=float(hi), n=result.n, p_min=result.p_min,
        p_value=result.p_value, method=method,
        note=f"{result.n} of the {MIN_RUNS} runs that a p-value and an interval need" if few else "",
    )  # fmt: skip
