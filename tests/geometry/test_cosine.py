"""Mean cosine, angles and norms: known answers, invariances, what has no value."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.geometry.cosine import (
    angular_distance,
    max_over_median_norm,
    mean_cosine,
    mean_cosine_centred,
    mean_norm,
    norm_drift,
)
from isotrace.geometry.undefined import Undefined


def cloud(seed: int, n: int = 60, d: int = 9) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, d)) * np.arange(1, d + 1) + 1.0


def test_mean_cosine_equals_the_mean_over_pairs() -> None:
    rows = cloud(0)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[np.triu_indices(len(rows), 1)]
    assert mean_cosine(rows) == pytest.approx(pairs.mean(), abs=1e-12)
    assert angular_distance(rows, max_rows=60, seed=0) == pytest.approx(np.arccos(pairs).mean() / np.pi, abs=1e-12)


def test_common_bias_gives_the_expected_cosine() -> None:
    """E cos = |mu|^2 / (|mu|^2 + sigma^2 d) for Gaussian rows about mu (Godey et al.'s toy)."""
    d, sigma = 400, 0.5
    mu = np.full(d, 0.7)
    rows = mu + sigma * np.random.default_rng(1).normal(size=(800, d))
    assert mean_cosine(rows) == pytest.approx(mu @ mu / (mu @ mu + sigma**2 * d), abs=5e-3)


def test_centring_removes_the_bias() -> None:
    rows = np.random.default_rng(2).normal(size=(200, 50)) + 100.0
    assert mean_cosine(rows) > 0.99
    assert mean_cosine_centred(rows) == pytest.approx(-1 / 199, abs=1e-3)


def test_equal_rows_have_cosine_one_and_angle_zero() -> None:
    rows = np.tile([3.0, 4.0], (30, 1))
    assert mean_cosine(rows) == pytest.approx(1.0)
    assert angular_distance(rows, max_rows=100, seed=0) == pytest.approx(0.0, abs=1e-7)
    assert norm_drift(rows) == pytest.approx(1.0)
    assert mean_norm(rows) == pytest.approx(5.0)


def test_a_subsample_of_angles_is_close_and_repeatable() -> None:
    rows = cloud(3, n=500)
    some = angular_distance(rows, max_rows=200, seed=0)
    assert some == angular_distance(rows, max_rows=200, seed=0)
    assert some != angular_distance(rows, max_rows=200, seed=1)
    assert some == pytest.approx(angular_distance(rows, max_rows=500, seed=0), abs=0.03)


def test_one_massive_row_shows_in_max_over_median() -> None:
    rows = np.random.default_rng(4).normal(size=(101, 20))
    rows[7] *= 1000 / np.linalg.norm(rows[7])
    assert max_over_median_norm(rows) == pytest.approx(1000 / np.median(np.linalg.norm(rows, axis=1)))


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-6, 1e6))
def test_rotation_scale_and_order_do_not_matter(seed: int, scale: float) -> None:
    rows = cloud(seed)
    random = np.random.default_rng(seed + 1)
    turned = scale * random.permutation(rows) @ np.linalg.qr(random.normal(size=(9, 9)))[0]
    for measure in (mean_cosine, mean_cosine_centred, norm_drift, max_over_median_norm):
        assert measure(turned) == pytest.approx(measure(rows), abs=1e-9)
    assert mean_norm(turned) == pytest.approx(scale * mean_norm(rows))


def test_zero_rows_have_no_direction() -> None:
    rows = cloud(5)
    assert mean_cosine(np.vstack([rows, np.zeros((4, 9))])) == pytest.approx(mean_cosine(rows))
    with pytest.raises(Undefined, match="fewer than two rows"):
        mean_cosine(np.zeros((5, 3)))
    with pytest.raises(Undefined, match="every row is zero"):
        norm_drift(np.zeros((5, 3)))
    with pytest.raises(Undefined, match="median row is zero"):
        max_over_median_norm(np.zeros((5, 3)))
