"""Fitted bases against numpy, the pooling switches, and principal angles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.errors import ConfigError, DataError
from isotrace.geometry.moments import moments
from isotrace.geometry.subspaces import METHODS, fit_basis, pool, principal_angles


def rows(seed: int, n: int = 300, d: int = 12, mean: float = 2.0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1, d + 1) ** -0.7 + mean


@pytest.mark.parametrize("method", sorted(METHODS))
def test_every_method_is_orthonormal_and_repeatable(method: str) -> None:
    x = rows(0)
    fits = [fit_basis(method, pool([[moments(x)]]), 4, seed=3, rows=x - x.mean(axis=0)) for _ in range(2)]
    vectors, variance = fits[0]
    assert np.abs(vectors.T @ vectors - np.eye(4)).max() < 1e-12
    assert vectors.tobytes() == fits[1][0].tobytes()
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(4)]
    assert np.all(largest > 0)
    operator = pool([[moments(x)]])
    expected = operator.second_moment if method == "svd" else operator.covariance
    np.testing.assert_allclose(variance, np.diag(vectors.T @ expected @ vectors), rtol=1e-9)
    if method in ("pca", "svd", "semi_nmf"):
        assert np.all(np.diff(variance) <= 1e-12)


def test_pca_and_svd_match_numpy() -> None:
    x = rows(1)
    pooled = pool([[moments(x)]])
    centred = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)[2][:3].T
    raw = np.linalg.svd(x, full_matrices=False)[2][:3].T
    assert principal_angles(fit_basis("pca", pooled, 3, seed=0)[0], centred).max() < 1e-7
    assert principal_angles(fit_basis("svd", pooled, 3, seed=0)[0], raw).max() < 1e-7


def test_buckets_weigh_the_same_whatever_their_size() -> None:
    a, b = rows(2, n=50), rows(3, n=400, mean=-1.0)
    small = pool([[moments(a), moments(b)]])
    large = pool([[moments(np.tile(a, (8, 1))), moments(b)]])
    np.testing.assert_allclose(small.covariance, large.covariance, rtol=1e-9, atol=1e-12)


def test_pooling_equals_stacked_rows_of_equal_size() -> None:
    parts = [rows(s, mean=float(s)) for s in range(4)]
    stacked = moments(np.concatenate(parts))
    pooled = pool([[moments(parts[0]), moments(parts[1])], [moments(parts[2]), moments(parts[3])]])
    np.testing.assert_allclose(pooled.covariance, stacked.scatter / stacked.n, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(pooled.second_moment, stacked.second_moment, rtol=1e-9)
    assert pooled.n == stacked.n


def test_centring_at_the_checkpoint_ignores_movement_of_the_mean() -> None:
    x = rows(4)
    still = pool([[moments(x)], [moments(x)]], center="checkpoint")
    moved = pool([[moments(x)], [moments(x + 100)]], center="checkpoint")
    np.testing.assert_allclose(still.covariance, moved.covariance, rtol=1e-8, atol=1e-10)
    assert np.trace(pool([[moments(x)], [moments(x + 100)]]).covariance) > 100 * np.trace(still.covariance)


def test_unit_trace_makes_checkpoints_comparable() -> None:
    x, y = rows(5, mean=0.0), rows(6, mean=0.0)
    plain = pool([[moments(x)], [moments(y)]], scale="trace")
    scaled = pool([[moments(x)], [moments(1000 * y)]], scale="trace")
    np.testing.assert_allclose(plain.covariance, scaled.covariance, rtol=1e-9)
    assert np.trace(pool([[moments(x)]], scale="trace").covariance) == pytest.approx(1)


def test_directions_without_variance_are_nan() -> None:
    thin = np.random.default_rng(0).standard_normal((50, 2)) @ np.random.default_rng(1).standard_normal((2, 8))
    vectors, variance = fit_basis("pca", pool([[moments(thin)]]), 4, seed=0)
    assert np.isfinite(vectors[:, :2]).all()
    assert np.isnan(vectors[:, 2:]).all()
    assert np.isnan(variance[2:]).all()


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.lists(st.floats(1e-9, np.pi / 2), min_size=1, max_size=3))
def test_principal_angles_recover_planted_ones(seed: int, planted: list[float]) -> None:
    k = len(planted)
    frame = np.linalg.qr(np.random.default_rng(seed).standard_normal((8, 8)))[0]
    a, away = frame[:, :k], frame[:, k : 2 * k]
    b = a * np.cos(planted) + away * np.sin(planted)
    np.testing.assert_allclose(principal_angles(a, b), np.sort(planted), atol=1e-12)
    np.testing.assert_allclose(
        principal_angles(b, frame[:, : k + 1]).max(initial=0),
        principal_angles(frame[:, : k + 1], b).max(initial=0),
        atol=1e-12,
    )


def test_what_cannot_be_fitted() -> None:
    pooled = pool([[moments(rows(0))]])
    with pytest.raises(ConfigError, match="'ica' is not one of pca"):
        fit_basis("ica", pooled, 2, seed=0)
    with pytest.raises(ConfigError, match=r"bases\.rank: 13"):
        fit_basis("pca", pooled, 13, seed=0)
    with pytest.raises(DataError, match="needs the rows"):
        fit_basis("semi_nmf", pooled, 2, seed=0)
    with pytest.raises(DataError, match="at least one bucket"):
        pool([[]])
    with pytest.raises(DataError, match="without rows"):
        pool([[moments(np.empty((0, 3)))]])
    with pytest.raises(DataError, match="unit trace"):
        pool([[moments(np.ones((3, 3)))]], scale="trace")
