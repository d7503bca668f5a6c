"""Order along buckets."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from isotrace.dynamics.ordered import ordering, page_p


def test_ordering_is_the_mean_spearman():
    rows = np.random.default_rng(0).standard_normal((7, 5))
    expected = np.mean([spearmanr(np.arange(5), row).statistic for row in rows])
    assert float(ordering(rows)) == pytest.approx(expected, abs=1e-12)
    assert float(ordering(rows[:, ::-1])) == pytest.approx(-expected, abs=1e-12)
    assert float(ordering(np.ones((2, 4)))) == 0.0


def test_two_buckets_have_no_order():
    assert np.isnan(ordering(np.ones((3, 2))))


def test_page_finds_either_direction():
    rows = np.arange(4.0) + 0.1 * np.random.default_rng(1).standard_normal((6, 4))
    up, p_min = page_p(rows)
    down, _ = page_p(-rows)
    assert up == pytest.approx(down)
    assert p_min <= up < 0.001
