"""From rows to numbers with intervals."""

import numpy as np
import pandas as pd
import pytest
from made_up import energy

from isotrace.dynamics import declared
from isotrace.dynamics.cells import SELECTORS
from isotrace.dynamics.measures import MEASURES, draws_reaching, energy_ratio


def test_ratio_bounds_are_odds_against_the_complement_and_shares_otherwise():
    frame = energy(lambda *_: np.log(20.0), steps=(0,))
    assert energy_ratio(frame)["hi"].to_numpy() == pytest.approx(20 * np.exp(0.05))
    ambient = energy_ratio(frame.assign(null_space="ambient"))
    assert ambient["hi"].to_numpy() == pytest.approx((20 * frame["energy_hi"] / frame["energy"]).to_numpy())


def test_draws_that_reach_the_tangent_are_counted_exactly():
    frame = pd.DataFrame({"n_nulls": [999, 99, 99], "p_value": [0.001, 0.05, 0.01], "delta_tangent": [0.1, 0.1, -0.1]})
    assert list(draws_reaching(frame)["estimate"]) == [0.0, 4.0, 99.0]


def test_vocabulary_and_implementation_agree():
    assert set(MEASURES) == set(declared.MEASURES)
    assert {kind: ("all", *names) for kind, names in SELECTORS.items()} == declared.SELECTORS
