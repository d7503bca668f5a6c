"""Weights that give rows another mean loss: exact for two values, positive, unmoved by a shift."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from isotrace.geometry.tilting import effective, tilted
from isotrace.geometry.undefined import Undefined

LOSSES = st.lists(st.floats(0, 12), min_size=3, max_size=60).map(np.array)


def test_two_values_have_the_one_possible_pair_of_weights():
    weights = tilted(np.array([1.0, 1.0, 3.0, 3.0]), 2.5)
    assert weights == pytest.approx([0.5, 0.5, 1.5, 1.5], rel=1e-9)
    assert effective(weights) == pytest.approx(16 / 5, rel=1e-9)


def test_weights_are_exponential_in_the_loss():
    loss = np.array([0.5, 1.0, 4.0, 2.0, 3.5])
    weights = tilted(loss, 3.0)
    slopes = np.diff(np.log(weights)) / np.diff(loss)
    assert slopes == pytest.approx(np.full(4, slopes[0]), rel=1e-9)
    assert slopes[0] > 0


def test_at_its_own_mean_every_row_counts_the_same():
    loss = np.random.default_rng(0).gamma(3.0, size=50)
    weights = tilted(loss, float(loss.mean()))
    assert weights == pytest.approx(np.ones(50), abs=1e-9)
    assert effective(weights) == pytest.approx(50)
    assert tilted(np.full(4, 2.0), 2.0).tolist() == [1, 1, 1, 1]


@given(loss=LOSSES, at=st.floats(0.1, 0.9))
def test_the_weighted_mean_is_the_target_and_a_shift_changes_nothing(loss, at):
    low, high = loss.min(), loss.max()
    assume(high - low > 1e-3)
    target = float(low + at * (high - low))
    weights = tilted(loss, target)
    assert (weights >= 0).all()
    assert weights.mean() == pytest.approx(1)
    assert np.average(loss, weights=weights) == pytest.approx(target, abs=1e-6)
    assert 1 <= effective(weights) * (1 + 1e-12) <= loss.size * (1 + 1e-9)
    assert tilted(loss + 5, target + 5) == pytest.approx(weights, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("target", [0.5, 3.5, 1.0, 3.0])
def test_a_target_that_no_weights_reach_is_said(target):
    with pytest.raises(Undefined, match="outside this bucket's 1 to 3"):
        tilted(np.array([1.0, 2.0, 3.0]), target)


def test_without_losses_there_is_nothing_to_balance():
    for loss, target in ((np.array([]), 1.0), (np.array([1.0, 2.0]), float("nan"))):
        with pytest.raises(Undefined, match="no token has a loss"):
            tilted(loss, target)
    assert effective(np.array([])) == 0
