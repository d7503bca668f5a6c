"""Whether two quantities move together over training, or one ahead of the other.

Spearman 1904, over the checkpoints of a run; with runs as the unit for a p-value (our rule).
"""

import numpy as np

from isotrace.dynamics.rows import SIMULATED, WITHIN_RUN, Family, Float, Row, across_run
from isotrace.dynamics.series import Series, block_of, run_means, with_bucket_means


def rank_correlation(x: Float, y: Float) -> Float:
    """Spearman's rho between rows of x and y (..., c); NaN below 4 checkpoints or where either is constant."""
    from scipy.stats import rankdata

    if x.shape[-1] < 4:
        return np.full(x.shape[:-1], np.nan)
    a, b = (rankdata(v, axis=-1) - (v.shape[-1] + 1) / 2 for v in (x, y))
    norm = np.sqrt(np.sum(a**2, axis=-1) * np.sum(b**2, axis=-1))
    return np.asarray(np.divide(np.sum(a * b, axis=-1), norm, out=np.full(norm.shape, np.nan), where=norm > 0))


def _matched(first: Series, second: Series, lag: int) -> tuple[list[int], list[int]]:
    """Rows of both at common checkpoints, the second ``lag`` checkpoints later."""
    steps = sorted(set(first.step.tolist()) & set(second.step.tolist()))
    pairs = list(zip(steps[: len(steps) - lag], steps[lag:], strict=True))
    return [int(np.searchsorted(first.step, a)) for a, _ in pairs], [
        int(np.searchsorted(second.step, b)) for _, b in pairs
    ]


def _effect(first: Series, second: Series, lag: int) -> float:
    i, j = _matched(first, second, lag)
    return float(rank_correlation(first.value[i], second.value[j]))


def in_run(family: Family, first: Series, second: Series, lag: int) -> Row:
    """Rank correlation of two series of one run, with the interval that their errors make."""
    i, j = _matched(first, second, lag)
    effect = _effect(first, second, lag)
    notes, method = [WITHIN_RUN], f"over checkpoints, lag {lag}"
    lo = hi = np.nan
    if not np.isfinite(effect):
        notes.append("fewer than 4 checkpoints, or a constant series")
    elif not (first.has_interval and second.has_interval):
        notes.append("no interval: the checkpoints carry none")
    else:
        rng = family.rng("correlation", first.model, first.site, first.bucket)
        x, y = (s.draws(family.resamples, rng, confidence=family.confidence) for s in (first, second))
        lo, hi = family.interval(effect, rank_correlation(x[:, i], y[:, j]), "spearman")
        method = f"{method}; {SIMULATED}"
    return Row(
        family=family.name, test="correlation", unit="sequence", model=first.model, site=first.site,
        bucket=first.bucket, quantity=family.quantity, statistic="spearman", effect=effect, lo=lo, hi=hi, n=len(i),
        method=method, note="; ".join(notes),
    )  # fmt: skip


def correlation(family: Family, against: list[Series], lag: int) -> list[Row]:
    """Rank correlation of a family's series with another quantity's, the other ``lag`` checkpoints later."""
    others = {(s.model, s.site, s.bucket): s for s in with_bucket_means(against)}
    pairs = []
    for s in with_bucket_means(family.series):
        # A head is set against the whole block where the other quantity has no heads.
        second = others.get((s.model, s.site, s.bucket)) or others.get((s.model, block_of(s.site), s.bucket))
        pairs += [(s, second)] if second else []
    rows = [in_run(family, first, second, lag) for first, second in pairs]
    means = {s.model: s for s in run_means(against)}
    for group, models in family.groups().items():
        runs = [s for s in run_means(family.series) if s.model in models and s.model in means]
        if runs:
            effects = [_effect(s, means[s.model], lag) for s in runs]
            result = family.over_runs(effects, family.rng("correlation", group))
            method = f"mean over runs, Wilcoxon signed rank, lag {lag}; a run is the mean over its sites and buckets"
            rows.append(across_run(family, "correlation", "mean_spearman", group, result, method=method))
    return rows
