"""Slopes over many runs, and fits that are no results."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_1samp

from isotrace.dynamics.mixed import slopes_over_runs


def runs(n, *, spread, slope=0.5, wander=0.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = []
    mean = slope
    for run in range(n):
        level = spread * rng.standard_normal()
        slope = mean + wander * rng.standard_normal()
        for x in np.linspace(0, 3, 8):
            for b, bucket in enumerate(("b0", "b1")):
                rows.append((f"r{run}", x, bucket, level + (slope + b) * x + 0.1 * rng.standard_normal()))
    return pd.DataFrame(rows, columns=["run", "x", "bucket", "value"])


def test_known_slopes_are_covered():
    fit = slopes_over_runs(runs(12, spread=1.0, wander=0.1), confidence=0.95)
    slope, interaction = fit.coefficients
    assert fit.method.startswith("mixed model")
    assert slope.lo < 0.5 < slope.hi
    assert interaction.name == "slope:bucket[T.b1]"
    assert interaction.effect == pytest.approx(1.0, abs=0.05)


def test_where_all_runs_have_the_same_checkpoints_it_is_the_t_test_of_their_slopes():
    frame = runs(12, spread=1.0, wander=0.3)
    frame = frame[frame["bucket"] == "b0"]
    slopes = [np.polynomial.Polynomial.fit(f["x"], f["value"], 1).deriv()(0) for _, f in frame.groupby("run")]
    (found,) = slopes_over_runs(frame, confidence=0.9).coefficients
    expected = ttest_1samp(slopes, 0)
    assert found.effect == pytest.approx(np.mean(slopes), rel=1e-6)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-4)
    interval = expected.confidence_interval(0.9)
    assert (found.lo, found.hi) == pytest.approx((interval.low, interval.high), rel=1e-4)


def test_runs_that_only_wander_have_no_common_slope():
    # Each run has a slope of its own around zero: that many checkpoints are still only ten runs.
    p_values = []
    for seed in range(20):
        fit = slopes_over_runs(runs(10, spread=1.0, slope=0.0, wander=0.3, seed=seed), confidence=0.95)
        p_values.append(fit.coefficients[0].p_value)
    assert np.mean(np.array(p_values) < 0.05) <= 0.15


def test_variance_at_the_boundary_falls_back_and_says_so():
    # With levels alternating against the noise the estimated run variance is zero.
    frame = runs(10, spread=0.0)
    frame["value"] -= frame.groupby("run")["value"].transform("mean")
    fit = slopes_over_runs(frame, confidence=0.95)
    assert fit.method.startswith("least squares")
    assert "mixed model not used" in fit.note
    assert fit.coefficients[0].effect == pytest.approx(0.5, abs=0.05)


def test_nine_runs_are_too_few():
    fit = slopes_over_runs(runs(9, spread=1.0), confidence=0.95)
    assert fit.coefficients == ()
    assert "9 runs" in fit.note
