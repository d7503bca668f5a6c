"""The tests of a family: each gives effects within every run, then one test across the runs of a group.

Trend, contrast, order and change point as in the modules of those names; which unit carries a p-value is our rule.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from isotrace.dynamics.breaks import MIN_CHECKPOINTS, change_point
from isotrace.dynamics.contrasts import MIN_RUNS, early_minus_late
from isotrace.dynamics.mixed import slopes_over_runs
from isotrace.dynamics.ordered import ordering, page_p
from isotrace.dynamics.rows import SIMULATED, WITHIN_RUN, Family, Float, Row, across_run, within_run
from isotrace.dynamics.series import Series, run_means, with_bucket_means
from isotrace.dynamics.shared import shared_run
from isotrace.dynamics.trends import block_permutation_p, kendall_tau, theil_sen_slope
from isotrace.tables import natural

RUN_MEAN = "a run is the mean over its sites and buckets"
PAIRED = f"Wilcoxon signed rank over runs; {RUN_MEAN}"
PERMUTED = f"larger p of permuting blocks of checkpoints in each run and of Wilcoxon signed rank over runs; {RUN_MEAN}"
ROW_MEAN = "a row is one run, the mean over its sites and checkpoints"
BREAK_RESAMPLES = 100
PERMUTATIONS = 999


def _runs(family: Family, group: list[str]) -> list[Series]:
    return run_means([s for s in family.series if s.model in group])


def trend(family: Family) -> list[Row]:
    """Kendall's tau with log10(1+step), and the Theil-Sen slope a decade of steps."""
    slope = "theil_sen_slope_log" if family.log else "theil_sen_slope"
    rows = [
        within_run(family, "trend", name, s, partial(of, s.x), method=f"{name} on log10(1+step)")
        for s in with_bucket_means(family.series)
        for name, of in (("kendall_tau", kendall_tau), (slope, theil_sen_slope))
    ]
    for group, models in family.groups().items():
        runs = _runs(family, models)
        rng = family.rng("trend", group)
        taus = family.over_runs([float(kendall_tau(r.x, r.value)) for r in runs], rng)
        if taus.n >= MIN_RUNS:
            p, p_min = block_permutation_p([r.x for r in runs], [r.value for r in runs], rng, draws=PERMUTATIONS)
            # Blocks alone reject 20 % of AR(1) 0.8 nulls at 12 checkpoints; the signed-rank test alone ignores time.
            taus = replace(taus, p_value=max(p, taus.p_value), p_min=max(p_min, taus.p_min))
        rows.append(across_run(family, "trend", "mean_kendall_tau", group, taus, method=PERMUTED))
        slopes = family.over_runs([float(theil_sen_slope(r.x, r.value)) for r in runs], rng)
        rows.append(across_run(family, "trend", f"mean_{slope}", group, slopes, method=PAIRED))
    return rows


def early_late(family: Family) -> list[Row]:
    """Mean over early minus mean over late checkpoints; of natural logs where the quantity is a ratio."""
    name = "log_early_over_late" if family.log else "early_minus_late"
    empty = "no early or no late checkpoint"
    rows = [
        within_run(
            family, "early_late", name, s, partial(early_minus_late, phase=s.phase), method="difference of means",
            too_few=empty,
        )
        for s in with_bucket_means(family.series)
    ]  # fmt: skip
    for group, models in family.groups().items():
        differences = [float(early_minus_late(r.value, r.phase)) for r in _runs(family, models)]
        result = family.over_runs(differences, family.rng("early_late", group))
        rows.append(across_run(family, "early_late", name, group, result, method=PAIRED))
    return rows


def _by_bucket(family: Family, model: str, sites: set[str]) -> list[list[Series]]:
    """Series of a model in order of bucket, most frequent first; one list a bucket."""
    parts = [s for s in family.series if s.model == model and s.site in sites]
    return [[s for s in parts if s.bucket == b] for b in sorted({s.bucket for s in parts}, key=natural)]


def _ordered_in_run(family: Family, model: str, site: str) -> Row | None:
    """How far one site's values rise along buckets, averaged over the checkpoints that all buckets have."""
    series = [found[0] for found in _by_bucket(family, model, {site})]
    steps = sorted(set.intersection(*(set(s.step.tolist()) for s in series)))
    if len(series) < 3 or not steps:
        return None
    at = [np.searchsorted(s.step, steps) for s in series]
    effect = float(ordering(np.stack([s.value[i] for s, i in zip(series, at, strict=True)], axis=-1)))
    lo = hi = np.nan
    method, note = "mean over checkpoints of Spearman's rho with bucket order (Page's L, rescaled)", WITHIN_RUN
    if all(s.has_interval for s in series):
        rng = family.rng("ordered_buckets", model, site)
        drawn = [s.draws(family.resamples, rng, confidence=family.confidence) for s in series]
        redrawn = ordering(np.stack([y[:, i] for y, i in zip(drawn, at, strict=True)], axis=-1))
        lo, hi = family.interval(effect, redrawn, "bucket_order")
        method = f"{method}; {SIMULATED}"
    else:
        note = f"{note}; no interval: the checkpoints carry none"
    return Row(
        family=family.name, test="ordered_buckets", unit="sequence", model=model, site=site, bucket="all",
        quantity=family.quantity, statistic="bucket_order", effect=effect, lo=lo, hi=hi, n=len(steps), method=method,
        note=note,
    )  # fmt: skip


def _ordered_over_runs(family: Family, group: str, models: list[str]) -> Row | None:
    """Page's test over runs that have the same buckets, at least three of them."""
    sites = {s.site for s in family.series}
    table = [[float(np.mean([s.value.mean() for s in b])) for b in _by_bucket(family, m, sites)] for m in models]
    width = max(map(len, table))
    if width < 3:
        return None
    runs = np.array([row for row in table if len(row) == width])
    rng = family.rng("ordered_buckets", group)
    result = family.over_runs([float(ordering(row[None])) for row in runs], rng)
    if result.n >= MIN_RUNS:
        p, p_min = page_p(runs)
        # Page alone takes a run's own order for evidence of a common one: 20 % at 5 % where runs only differ.
        result = replace(result, p_value=max(p, result.p_value), p_min=max(p_min, result.p_min))
    method = f"larger p of Page's test and of Wilcoxon signed rank over runs; {ROW_MEAN}"
    return across_run(family, "ordered_buckets", "bucket_order", group, result, method=method)


def ordered_buckets(family: Family) -> list[Row]:
    """Whether values rise (1) or fall (-1) from frequent to rare buckets; Page's test with a row for each run."""
    places = sorted({(s.model, s.site) for s in family.series})
    rows = [_ordered_in_run(family, model, site) for model, site in places]
    rows += [_ordered_over_runs(family, group, models) for group, models in family.groups().items()]
    return [row for row in rows if row is not None]


def _breaks(values: Float, *, x: Float, which: int) -> Float:
    return np.array([change_point(x, row)[which] for row in values])


def change_points(family: Family) -> list[Row]:
    """Where the mean over buckets changes its level, as log10(1+step), and by how much."""
    found = {(s.model, s.site): s for s in with_bucket_means(family.series)}
    rows = []
    for s in found.values():
        few = f"{len(s.step)} of the {MIN_CHECKPOINTS} checkpoints that a change point needs"
        for which, name in enumerate(("change_point_log10_step", "change_of_level")):
            of = partial(_breaks, x=s.x, which=which)
            row = within_run(
                family, "change_point", name, s, of, method="one change of mean, least squares", too_few=few,
                resamples=BREAK_RESAMPLES,
            )  # fmt: skip
            rows.append(row)
    return rows


def mixed(family: Family) -> list[Row]:
    """Slopes over training and their dependence on the bucket, with run as the group."""
    rows = []
    for group, models in family.groups().items():
        parts = [s for s in family.series if s.model in models]
        frames = [pd.DataFrame({"run": s.model, "bucket": s.bucket, "x": s.x, "value": s.value}) for s in parts]
        fit = slopes_over_runs(pd.concat(frames, ignore_index=True), confidence=family.confidence)
        base = Row(
            family=family.name, test="mixed", unit="run", model=group, site="all", bucket="all",
            quantity=family.quantity, statistic="slope", effect=np.nan, n=fit.n, method=fit.method, note=fit.note,
        )  # fmt: skip
        rows += [base] if not fit.coefficients else []
        for c in fit.coefficients:
            found = replace(base, statistic=c.name, effect=c.effect, lo=c.lo, hi=c.hi)
            rows.append(replace(found, p_value=c.p_value, p_min=0.0))
    return rows


BATTERY: dict[str, Callable[[Family], list[Row]]] = {
    "trend": trend,
    "early_late": early_late,
    "ordered_buckets": ordered_buckets,
    "change_point": change_points,
    "mixed": mixed,
    "shared_run": shared_run,
}
