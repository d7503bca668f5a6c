"""Semi-NMF: monotone, recovers parts that are there, deterministic."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.errors import DataError
from isotrace.geometry.semi_nmf import semi_nmf


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 4), st.sampled_from([1e-3, 1.0, 1e3]))
def test_objective_never_rises(seed: int, rank: int, scale: float) -> None:
    x = np.random.default_rng(seed).standard_normal((40, 6)) * scale
    found = semi_nmf(x, rank, seed=0, iterations=40)
    assert np.all(found.loadings >= 0)
    assert np.all(np.diff(found.objective) <= 1e-9 * found.objective[0])
    error = np.square(x - found.loadings @ found.concepts).sum()
    assert error == pytest.approx(found.objective[-1], rel=1e-8)


def test_recovers_planted_concepts() -> None:
    rng = np.random.default_rng(3)
    concepts = rng.standard_normal((3, 20))
    x = rng.gamma(0.3, size=(300, 3)) @ concepts
    found = semi_nmf(x, 3, seed=0, iterations=2000, tolerance=1e-12)
    assert found.objective[-1] < 1e-3 * np.square(x).sum()


def test_same_seed_same_bytes() -> None:
    x = np.random.default_rng(0).standard_normal((50, 5))
    assert semi_nmf(x, 3, seed=1).loadings.tobytes() == semi_nmf(x, 3, seed=1).loadings.tobytes()


def test_too_few_distinct_rows() -> None:
    with pytest.raises(DataError, match="more than 3 distinct rows"):
        semi_nmf(np.repeat(np.eye(3), 5, axis=0), 3, seed=0)
