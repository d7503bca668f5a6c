"""One change point."""

import numpy as np
import pytest

from isotrace.dynamics.breaks import change_point


@pytest.mark.parametrize("at", [5, 12, 20])
def test_known_step_is_found(at):
    x = np.linspace(0, 3, 25)
    y = np.where(np.arange(25) < at, 0.0, 2.0) + 0.1 * np.random.default_rng(0).standard_normal(25)
    where, change = change_point(x, y)
    assert where == pytest.approx((x[at - 1] + x[at]) / 2)
    assert change == pytest.approx(2.0, abs=0.1)


@pytest.mark.parametrize("y", [np.arange(19.0), np.ones(30)])
def test_too_few_or_constant(y):
    assert np.isnan(change_point(np.arange(len(y), dtype=float), y)).all()
