"""Sums of rows that pass by once, against moments of all rows in float64."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.capture.sums import Sums
from isotrace.geometry.moments import moments

CPU = torch.device("cpu")


def rows(n: int, offset: float) -> np.ndarray:
    rng = np.random.default_rng(n)
    return (offset + rng.standard_normal((n, 6)) @ rng.standard_normal((6, 6))).astype(np.float32)


def summed(values: np.ndarray, cuts: list[int]):
    sums = Sums(values.shape[1], CPU)
    for part in np.split(values, sorted(cuts)):
        sums.add(torch.from_numpy(part))
    return sums.moments()


def assert_same(found, wanted):
    assert found.n == wanted.n
    scale = np.sqrt(np.trace(wanted.scatter) / max(wanted.n, 1))
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-9, atol=1e-9 * scale)
    for name, power in (("scatter", 2), ("q3", 3), ("q4", 4)):
        limit = 1e-9 * wanted.n * scale**power
        np.testing.assert_allclose(getattr(found, name), getattr(wanted, name), rtol=1e-9, atol=limit)


@settings(max_examples=40)
@given(n=st.integers(1, 80), cuts=st.lists(st.integers(0, 80), max_size=6), offset=st.sampled_from([0.0, 1.0, 1000.0]))
def test_any_cutting_gives_the_moments_of_the_whole(n, cuts, offset):
    values = rows(n, offset)
    assert_same(summed(values, cuts), moments(values))


def test_a_known_case_by_hand():
    found = summed(np.array([[0.0, 1.0], [2.0, 1.0]], np.float32), [1])
    assert found.n == 2
    np.testing.assert_array_equal(found.mean, [1, 1])
    np.testing.assert_array_equal(found.scatter, [[2, 0], [0, 0]])
    np.testing.assert_array_equal(found.q3, [0, 0])
    assert found.q4 == 2


def test_no_rows_have_no_moments():
    found = summed(np.empty((0, 3), np.float32), [])
    assert found.n == 0
    assert not found.scatter.any()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA here")
def test_a_gpu_sums_what_a_cpu_sums():
    values = rows(500, 3.0)
    sums = Sums(6, torch.device("cuda"))
    sums.add(torch.from_numpy(values).cuda())
    assert_same(sums.moments(), moments(values))
