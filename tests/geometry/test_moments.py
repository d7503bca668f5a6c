"""Moments against numpy, and their algebra under any chunking."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.errors import DataError
from isotrace.geometry.moments import Moments, drop, empty, merge, merge_all, moments

CLOUDS = st.tuples(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(1, 6), st.sampled_from([0.0, 1.0, 1e3]))


def cloud(seed: int, n: int, d: int, mean: float) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) + mean


def close(a: Moments, b: Moments, tolerance: float = 1e-9) -> None:
    assert a.n == b.n
    scale = np.sqrt(max(np.trace(b.scatter), 1e-30))
    for name, power in (("mean", 1), ("scatter", 2), ("q3", 3), ("q4", 4)):
        size = max(scale**power, float(np.abs(getattr(b, name)).max()))
        assert np.abs(np.asarray(getattr(a, name)) - getattr(b, name)).max() <= tolerance * size


def test_agrees_with_numpy() -> None:
    x = cloud(0, 50, 4, 3.0)
    y = x - x.mean(axis=0)
    q = (y**2).sum(axis=1)
    m = moments(x)
    np.testing.assert_allclose(m.covariance, np.cov(x, rowvar=False), rtol=1e-12)
    np.testing.assert_allclose(m.second_moment, x.T @ x / 50, rtol=1e-12)
    np.testing.assert_allclose(m.q3, q @ y, rtol=1e-10)
    assert m.q4 == pytest.approx(q @ q)


@settings(max_examples=60)
@given(CLOUDS, st.lists(st.floats(0, 1), max_size=4))
def test_any_chunking_gives_the_whole(shape: tuple[int, int, int, float], cuts: list[float]) -> None:
    x = cloud(*shape)
    edges = [0, *sorted(int(c * len(x)) for c in cuts), len(x)]
    close(merge_all(moments(x[a:b]) for a, b in pairwise(edges)), moments(x))


@settings(max_examples=60)
@given(CLOUDS, st.floats(0, 1))
def test_drop_undoes_merge(shape: tuple[int, int, int, float], cut: float) -> None:
    x = cloud(*shape)
    at = int(cut * (len(x) - 1))
    part, rest = moments(x[:at]), moments(x[at:])
    whole = moments(x)
    dropped = drop(merge(part, rest), part)
    assert dropped.n == rest.n
    scale = np.trace(whole.scatter)
    assert np.abs(dropped.scatter - rest.scatter).max() <= 1e-9 * scale
    assert np.abs(dropped.q3 - rest.q3).max() <= 1e-9 * scale**1.5
    assert abs(dropped.q4 - rest.q4) <= 1e-9 * scale**2


def test_far_from_the_origin_in_float32() -> None:
    x = (cloud(1, 4000, 3, 0.0) + 1000).astype(np.float32)
    exact = x.astype(np.longdouble)
    expected = np.asarray(((exact - exact.mean(axis=0)) ** 2).sum(axis=0), np.float64)
    chunks = merge_all(moments(x[i : i + 100]) for i in range(0, 4000, 100))
    np.testing.assert_allclose(np.diag(chunks.scatter), expected, rtol=1e-9)


def test_nothing_to_measure() -> None:
    with pytest.raises(DataError, match="two rows"):
        _ = moments(np.ones((1, 2))).covariance
    with pytest.raises(DataError, match="none"):
        _ = empty(2).second_moment
    with pytest.raises(DataError, match="no moments"):
        merge_all([])
    with pytest.raises(DataError, match="cannot take 3 rows out of 2"):
        drop(moments(np.eye(2)), moments(np.eye(3)[:, :2]))
    assert drop(moments(np.eye(2)), moments(np.eye(2))).n == 0
