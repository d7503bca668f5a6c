"""Overlaps of subspaces against planted angles, scipy, and draws of unrelated subspaces."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from isotrace.geometry.nulls import haar_frames
from isotrace.geometry.overlap import mean_overlap, subspace_overlap
from isotrace.geometry.undefined import Undefined

NULL = {"draws": 99, "seed": 0}


def frame(d, k, seed):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, k)))[0]


def turned(degrees, d):
    """A subspace and one that differs from it by the given principal angles."""
    k = len(degrees)
    angles = np.radians(degrees)
    a, b = np.zeros((d, k)), np.zeros((d, k))
    for i, angle in enumerate(angles):
        a[i, i], b[i, i], b[k + i, i] = 1, np.cos(angle), np.sin(angle)
    return a, b


def test_planted_angles_come_back():
    found = subspace_overlap(*turned([10, 35, 70], 12), **NULL)
    assert found.angle_min == pytest.approx(10)
    assert found.angle_max == pytest.approx(70)
    assert found.overlap == pytest.approx(np.mean(np.cos(np.radians([10, 35, 70])) ** 2))


@pytest.mark.parametrize(("degrees", "overlap", "p_value"), [([0, 0], 1, 1 / 100), ([90, 90], 0, 1)])
def test_the_same_and_a_foreign_subspace(degrees, overlap, p_value):
    found = subspace_overlap(*turned(degrees, 30), **NULL)
    assert found.overlap == pytest.approx(overlap, abs=1e-12)
    assert found.p_value == p_value


@given(d=st.integers(5, 20), k=st.integers(1, 4), seed=st.integers(0, 1000))
@settings(max_examples=40)
def test_angles_are_those_of_scipy_and_neither_side_nor_rotation_matters(d, k, seed):
    a, b = frame(d, k, seed), frame(d, k, seed + 1)
    found = subspace_overlap(a, b, **NULL)
    angles = np.degrees(subspace_angles(a, b))
    assert found.angle_max == pytest.approx(angles.max(), abs=1e-5)
    assert found.angle_min == pytest.approx(angles.min(), abs=1e-5)
    turn, inside = frame(d, d, seed + 2), frame(k, k, seed + 3)
    for other in (subspace_overlap(b, a, **NULL), subspace_overlap(turn @ a @ inside, turn @ b, **NULL)):
        assert other.overlap == pytest.approx(found.overlap, abs=1e-12)
        assert other.angle_max == pytest.approx(found.angle_max, abs=1e-5)


def test_the_reference_is_that_of_drawn_subspaces():
    d, k, draws = 24, 3, 4000
    basis = frame(d, k, 5)
    drawn = np.concatenate(
        [(np.einsum("bdk,dl->bkl", f, basis) ** 2).sum(axis=(1, 2)) / k for f in haar_frames(d, k, draws, 9)]
    )
    found = subspace_overlap(basis, frame(d, k, 6), draws=draws, seed=9)
    assert found.haar_mean == pytest.approx(k / d)
    assert found.haar_mean == pytest.approx(drawn.mean(), abs=4 * drawn.std() / draws**0.5)
    assert found.haar_sd == pytest.approx(drawn.std(), rel=0.05)
    assert found.p_value == pytest.approx((1 + (drawn >= found.overlap).sum()) / (draws + 1), abs=0.03)
    assert found.z == pytest.approx((found.overlap - k / d) / found.haar_sd)


def test_p_of_unrelated_subspaces_is_uniform():
    p = [subspace_overlap(frame(16, 3, s), frame(16, 3, 10_000 + s), draws=199, seed=1).p_value for s in range(300)]
    for level in (0.05, 0.25, 0.5):
        assert np.mean(np.array(p) <= level) == pytest.approx(level, abs=4 * (level * (1 - level) / 300) ** 0.5)


def test_a_mean_over_alike_frames_is_one_overlap_and_over_unlike_ones_scatters_less():
    one, basis = frame(20, 2, 0), frame(20, 2, 1)
    alone = subspace_overlap(one, basis, **NULL)
    same = mean_overlap([one] * 5, basis, **NULL)
    assert (same.overlap, same.haar_sd) == pytest.approx((alone.overlap, alone.haar_sd))
    unlike = mean_overlap([frame(20, 2, s) for s in range(50)], basis, **NULL)
    assert unlike.haar_mean == pytest.approx(alone.haar_mean)
    assert unlike.haar_sd < alone.haar_sd / 3


def test_a_direction_that_was_not_determined_is_a_reason():
    lame = frame(8, 3, 0)
    lame[:, 2] = np.nan
    with pytest.raises(Undefined, match="determine 2 of 3"):
        subspace_overlap(lame, frame(8, 3, 1), **NULL)
    with pytest.raises(Undefined, match="fills all 4"):
        subspace_overlap(np.eye(4), np.eye(4), **NULL)
