"""Adjusted p-values: against statsmodels, and with members missing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from isotrace.dynamics.multiplicity import benjamini_hochberg


@settings(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.integers(0, 5))
def test_missing_members_are_held_out(p_values, missing):
    adjusted = benjamini_hochberg([*p_values, *[np.nan] * missing])
    expected = multipletests(p_values, method="fdr_bh")[1]
    assert adjusted[: len(p_values)] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(adjusted[len(p_values) :]).all()


def test_a_p_value_is_a_probability():
    with pytest.raises(ValueError, match="lies in"):
        benjamini_hochberg([0.5, 1.5])
