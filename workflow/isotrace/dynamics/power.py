"""How often a design would see an effect: simulated runs through the tests that the dynamics table makes.

Power by simulation; draws against a null space by the binomial distribution (Davison and Hinkley 1997, section 4.2.5).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotrace.dynamics.battery import BATTERY
from isotrace.dynamics.rows import Family, Row
from isotrace.dynamics.simulate import Design, Variation, simulated
from isotrace.seeding import generator

STATISTICS = {"early_late": "log_early_over_late", "trend": "mean_kendall_tau", "ordered_buckets": "bucket_order"}
ENOUGH = 0.8


@dataclass(frozen=True)
class Power:
    """Share of repetitions with p <= alpha, its standard error, and the smallest p that the design can give."""

    design: Design
    power: float
    error: float
    p_min: float


def _tested(test: str, design: Design, variation: Variation, effect: float, seed: int, repetition: int) -> Row:
    labels = (test, design.runs, design.checkpoints, design.sites, design.buckets, design.tokens, repetition)
    series = simulated(design, variation, effect, generator(seed, "power", *labels), ordered=test == "ordered_buckets")
    family = Family(
        name=f"power {repetition}", quantity="energy.ratio", log=True, series=series, seed=seed, resamples=1,
        confidence=0.95, objective={s.model: "all" for s in series},
    )  # fmt: skip
    rows = BATTERY[test](family)
    return next(row for row in rows if row.unit == "run" and row.statistic == STATISTICS[test])


def power(
    design: Design, variation: Variation, effect: float, *, test: str, alpha: float, repetitions: int, seed: int
) -> Power:
    """Power of one test across runs; effect in units of the series, from early to late or frequent to rare.

    Zero, with no p_min, where the design gives no p-value at all (fewer than five runs).
    """
    rows = [_tested(test, design, variation, effect, seed, i) for i in range(repetitions)]
    seen = float(np.mean([row.p_value <= alpha for row in rows]))
    error = float(np.sqrt(max(seen * (1 - seen), 1 / (4 * repetitions)) / repetitions))
    return Power(design, seen, error, rows[0].p_min)


def smallest(found: Sequence[Power]) -> Power | None:
    """The first design with power of at least 0.8: fewest runs, then checkpoints, sites and tokens."""
    enough = [p for p in found if p.power >= ENOUGH]
    return min(enough, key=_cost) if enough else None


def _cost(found: Power) -> tuple[int, int, int, int]:
    d = found.design
    return d.runs, d.checkpoints, d.sites, d.tokens


def power_of_draws(draws: int, tail: float, *, alpha: float) -> float:
    """Probability that p = (1 + #{null >= observed}) / (B + 1) is at most alpha, over B = ``draws`` null subspaces.

    ``tail`` is the share of all null subspaces that reach the observed value: the p-value of infinitely many draws.
    """
    from scipy.stats import binom

    most = np.floor(alpha * (draws + 1) * (1 + 1e-12)) - 1
    return float(binom.cdf(most, draws, tail))
