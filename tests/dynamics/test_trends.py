"""Trends: against SciPy, known slopes, false positives with runs as the unit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, theilslopes

from isotrace.dynamics.contrasts import across_runs
from isotrace.dynamics.trends import block_permutation_p, kendall_tau, shuffled_blocks, theil_sen_slope

VALUES = st.lists(st.integers(-5, 5), min_size=4, max_size=12)


@settings(max_examples=50)
@given(VALUES)
def test_tau_is_scipys_with_ties(values):
    y = np.array(values, float)
    x = np.arange(len(y), dtype=float)
    tau = float(kendall_tau(x, y))
    if np.ptp(y) == 0:
        assert np.isnan(tau)
    else:
        assert tau == pytest.approx(kendalltau(x, y).statistic, abs=1e-12)


@settings(max_examples=50)
@given(VALUES, st.floats(0.5, 3), st.floats(-2, 2))
def test_slope_is_scipys_and_moves_with_units(values, scale, shift):
    y = np.array(values, float)
    x = np.arange(len(y), dtype=float) ** 1.5
    slope = float(theil_sen_slope(x, y))
    assert slope == pytest.approx(theilslopes(y, x).slope, abs=1e-12)
    assert float(theil_sen_slope(x, scale * y + shift)) == pytest.approx(scale * slope, abs=1e-9)


def test_rows_are_treated_alike():
    x, y = np.arange(6.0), np.random.default_rng(0).standard_normal((5, 6))
    assert kendall_tau(x, y) == pytest.approx([float(kendall_tau(x, row)) for row in y])
    assert theil_sen_slope(x, y) == pytest.approx([float(theil_sen_slope(x, row)) for row in y])


def test_two_checkpoints_have_no_trend():
    assert np.isnan(kendall_tau(np.arange(2.0), np.arange(2.0)))
    assert np.isnan(theil_sen_slope(np.arange(2.0), np.arange(2.0)))


def test_shuffle_is_a_permutation():
    rng = np.random.default_rng(1)
    assert all(sorted(shuffled_blocks(n, rng)) == list(range(n)) for n in range(1, 20))


def test_common_trend_over_runs_is_found():
    rng = np.random.default_rng(2)
    x = np.arange(16.0)
    ys = [x + rng.standard_normal(16) for _ in range(6)]
    p, p_min = block_permutation_p([x] * 6, ys, rng, draws=199)
    assert p == p_min == 1 / 200


def test_dependent_checkpoints_do_not_make_trends():
    """Kendall on AR(1) 0.8 with 12 points rejects 37 % of the time; six runs tested as the table does, 5 %."""
    rng = np.random.default_rng(3)
    x, rejected = np.arange(12.0), 0
    for _ in range(100):
        ys = np.zeros((6, 12))
        ys[:, 0] = rng.standard_normal(6) / 0.6
        for t in range(1, 12):
            ys[:, t] = 0.8 * ys[:, t - 1] + rng.standard_normal(6)
        signs = across_runs(kendall_tau(x, ys), rng, confidence=0.95)
        rejected += max(block_permutation_p([x] * 6, list(ys), rng, draws=99)[0], signs.p_value) <= 0.05
    assert rejected <= 10
