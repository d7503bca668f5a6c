"""TwoNN: a known dimension, unharmed by copies; too few distinct rows have no dimension."""

import numpy as np
import pytest

from isotrace.geometry.dimension import two_nearest, twonn
from isotrace.geometry.undefined import Undefined


def flat_cloud(dimension: int, n: int = 800, width: int = 30) -> np.ndarray:
    random = np.random.default_rng(0)
    return random.uniform(size=(n, dimension)) @ np.linalg.qr(random.normal(size=(width, dimension)))[0].T


@pytest.mark.parametrize("dimension", [2, 5])
def test_a_flat_cloud_has_its_dimension(dimension: int) -> None:
    assert twonn(flat_cloud(dimension), max_rows=2000, seed=0) == pytest.approx(dimension, rel=0.15)


def test_copies_exact_or_rounded_change_nothing() -> None:
    rows = flat_cloud(5)
    alone = twonn(rows, max_rows=2000, seed=0)
    assert twonn(np.vstack([rows, rows[:200]]), max_rows=2000, seed=0) == pytest.approx(alone, rel=1e-9)
    rounded = rows[:200] * (1 + 1e-9)
    assert twonn(np.vstack([rows, rounded]), max_rows=2000, seed=0) == pytest.approx(alone, rel=1e-3)


def test_an_offset_of_a_thousand_changes_nothing() -> None:
    rows = flat_cloud(5)
    assert twonn(rows + 1000.0, max_rows=2000, seed=0) == pytest.approx(twonn(rows, max_rows=2000, seed=0), rel=1e-6)


def test_a_subsample_is_seeded() -> None:
    rows = flat_cloud(3)
    assert twonn(rows, max_rows=300, seed=1) == twonn(rows, max_rows=300, seed=1)
    assert twonn(rows, max_rows=300, seed=1) == pytest.approx(3, rel=0.25)


def test_two_nearest_equals_brute_force() -> None:
    rows = np.random.default_rng(3).normal(size=(50, 4))
    apart = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    np.testing.assert_allclose(two_nearest(rows), np.sort(apart, axis=1)[:, 1:3], rtol=1e-12)


def test_too_few_distinct_rows() -> None:
    with pytest.raises(Undefined, match="fewer than 20 distinct rows"):
        twonn(np.tile(np.eye(10), (30, 1)), max_rows=2000, seed=0)
