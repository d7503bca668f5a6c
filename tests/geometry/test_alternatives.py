"""Odds ratios with a direction, coordinates or drawn subspaces taken into account, beside naive recomputations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bucket import haar
from scipy.linalg import null_space, orth

from isotrace.geometry.alternatives import odds_ratio, ratio, ratio_dropping, ratio_to_frames, ratio_without
from isotrace.geometry.energy import complement_null, energy_fraction
from isotrace.geometry.nulls import root, variance_weighted_frames
from isotrace.geometry.undefined import Undefined

D, K = 12, 3


def cloud(seed, n=200):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, D)) * np.linspace(2, 0.3, D) + rng.standard_normal(D)
    return rows, haar(rng, D, K)


def test_the_ratio_is_energy_over_the_exact_mean_of_the_complement_null():
    rows, vectors = cloud(0)
    matrix = rows.T @ rows / len(rows)
    null = complement_null(matrix, vectors, 1, 0)
    assert ratio(matrix, vectors) == pytest.approx(energy_fraction(matrix, vectors) / null.mean, rel=1e-12)


def test_without_a_direction_is_the_ratio_of_projected_rows_in_one_dimension_less():
    rows, vectors = cloud(1)
    direction = rows.mean(axis=0)
    left = null_space(direction[None])
    inside = orth(left.T @ vectors)
    projected = rows @ left
    expected = ratio(projected.T @ projected, inside)
    assert ratio_without(rows.T @ rows, vectors, direction) == pytest.approx(expected, rel=1e-12)


def test_dropping_coordinates_is_the_ratio_of_shorter_rows():
    rows, vectors = cloud(2)
    shorter, inside = np.delete(rows, [0, 5], axis=1), orth(np.delete(vectors, [0, 5], axis=0))
    expected = ratio(shorter.T @ shorter, inside)
    assert ratio_dropping(rows.T @ rows, vectors, np.array([5, 0])) == pytest.approx(expected, rel=1e-12)


def test_an_excess_that_is_the_mean_direction_or_one_coordinate_goes_with_it():
    matrix = np.eye(D)
    matrix[4, 4] = 50.0
    vectors = np.eye(D)[:, [4, 7, 8]]
    assert ratio(matrix, vectors) > 10
    assert ratio_without(matrix, vectors, np.eye(D)[4]) == pytest.approx(1, rel=1e-12)
    assert ratio_dropping(matrix, vectors, np.array([4])) == pytest.approx(1, rel=1e-12)
    assert ratio_without(matrix, vectors, np.eye(D)[0]) > 10
    assert ratio_dropping(matrix, vectors, np.array([0])) > 10


def test_an_excess_that_is_activation_variance_goes_with_subspaces_drawn_by_it():
    rng = np.random.default_rng(3)
    variance = np.diag([*np.full(8, 400.0), *np.ones(4)])
    vectors = np.eye(D)[:, :2]
    frames = variance_weighted_frames(root(variance), vectors, 999, 0)
    assert ratio(variance, vectors) > 1.5
    assert ratio_to_frames(variance, vectors, frames) == pytest.approx(1, abs=0.02)
    assert ratio_to_frames(np.eye(D), haar(rng, D, 2), frames) == pytest.approx(1, rel=1e-9)


@given(seed=st.integers(0, 50))
def test_turning_rows_basis_and_direction_together_changes_nothing(seed):
    rows, vectors = cloud(seed)
    turn = haar(np.random.default_rng(seed + 1), D, D)
    direction, turned = rows.mean(axis=0), rows @ turn.T
    before = ratio_without(rows.T @ rows, vectors, direction)
    assert ratio_without(turned.T @ turned, turn @ vectors, turn @ direction) == pytest.approx(before, rel=1e-9)


@given(seed=st.integers(0, 50), factor=st.floats(1e-3, 1e3))
def test_what_is_dropped_may_have_any_size(seed, factor):
    rows, vectors = cloud(seed)
    larger = rows * np.where(np.arange(D) == 2, factor, 1.0)
    dropped = np.array([2])
    assert ratio_dropping(larger.T @ larger, vectors, dropped) == pytest.approx(
        ratio_dropping(rows.T @ rows, vectors, dropped), rel=1e-9
    )


def test_what_has_no_ratio_says_why():
    matrix, axis = np.eye(D), np.eye(D)[:, :1]
    with pytest.raises(Undefined, match="all energy lies in the basis"):
        ratio(np.diag([1.0, *np.zeros(D - 1)]), axis)
    with pytest.raises(Undefined, match="rank 7 leaves no complement of that rank in width 12"):
        odds_ratio(0.5, 7, D)
    with pytest.raises(Undefined, match="nothing of the basis is left"):
        ratio_without(matrix, axis, axis[:, 0])
    with pytest.raises(Undefined, match="nothing of the basis is left"):
        ratio_dropping(matrix, axis, np.array([0]))
    with pytest.raises(Undefined, match="the mean has no direction"):
        ratio_without(matrix, axis, np.zeros(D))
    with pytest.raises(Undefined, match="along the mean"):
        ratio_without(np.diag([1.0, *np.zeros(D - 1)]), np.eye(D)[:, 3:4], axis[:, 0])
    with pytest.raises(Undefined, match="the rows have no energy"):
        ratio_dropping(np.diag([1.0, *np.zeros(D - 1)]), np.eye(D)[:, 3:4], np.array([0]))
    with pytest.raises(Undefined, match="fewer than 1 dimensions"):
        ratio_to_frames(matrix, axis, None)
