"""Early against late, and what runs can and cannot show."""

import numpy as np
import pytest
from scipy.stats import PermutationMethod, ttest_1samp, wilcoxon

from isotrace.dynamics.contrasts import across_runs, early_minus_late

HOW = {"confidence": 0.95}


def test_known_difference():
    phase = np.array(["early", "early", "mid", "late"])
    assert early_minus_late(np.array([3.0, 5.0, 99.0, 1.0]), phase) == 3.0
    assert np.isnan(early_minus_late(np.array([3.0]), np.array(["early"])))


def test_below_five_runs_there_is_no_p_value():
    result = across_runs([1.0, 2.0, 3.0, 4.0], np.random.default_rng(0), **HOW)
    assert result.effect == 2.5
    assert np.isnan([result.p_value, result.p_min, result.lo, result.hi]).all()


def test_five_runs_cannot_go_below_one_sixteenth():
    result = across_runs([1.0, 2.0, 3.0, 4.0, 5.0, np.nan], np.random.default_rng(0), **HOW)
    assert result.p_value == result.p_min == 0.0625
    assert result.n == 5
    assert result.lo < 3 < result.hi


def test_it_is_scipys_signed_rank_and_one_sided_halves():
    x = np.random.default_rng(1).standard_normal(9) + 0.5
    result = across_runs(x, np.random.default_rng(0), **HOW)
    assert result.p_value == pytest.approx(wilcoxon(x).pvalue)
    assert across_runs(x, np.random.default_rng(0), **HOW, sided="greater").p_min == result.p_min / 2


def test_the_interval_is_students_and_follows_shift_and_scale():
    x = np.random.default_rng(2).standard_normal(6)
    known = ttest_1samp(x, 0).confidence_interval(0.9)
    for shift, scale in ((0.0, 1.0), (5.0, 3.0)):
        result = across_runs(shift + scale * x, np.random.default_rng(0), confidence=0.9)
        assert (result.lo, result.hi) == pytest.approx((shift + scale * known.low, shift + scale * known.high))


@pytest.mark.parametrize("sided", ["two-sided", "greater", "less"])
def test_ties_are_exact_as_scipys_enumeration(sided):
    rng = np.random.default_rng(2)
    for runs in (6, 9):
        x = rng.choice([-1.0, -0.5, 0.5, 1.0, 2.0], runs)
        expected = wilcoxon(x, alternative=sided, method=PermutationMethod(n_resamples=9999, rng=rng)).pvalue
        found = across_runs(x, np.random.default_rng(0), **HOW, sided=sided)
        assert found.p_value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("x", [[0.0] * 6, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]])
def test_ties_and_zeros_are_no_evidence(x):
    assert across_runs(x, np.random.default_rng(0), **HOW).p_value == pytest.approx(1.0)
