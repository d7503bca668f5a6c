"""Random subspaces: orthonormal, reproducible, and with the exact moments."""

import json
from pathlib import Path

import numpy as np
import pytest

from isotrace.errors import ConfigError
from isotrace.geometry.nulls import (
    haar_columns,
    haar_frames,
    haar_mean,
    haar_sd,
    haar_weights,
    orthonormal,
    p_value,
    root,
    variance_weighted_frames,
)

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "isotropy.json").read_text())["rows"]


@pytest.mark.parametrize(("m", "k"), [(40, 3), (8, 4), (5, 5)])
def test_frames_are_orthonormal(m: int, k: int) -> None:
    for frames in haar_frames(m, k, 50, 0):
        gram = np.matmul(frames.swapaxes(1, 2), frames)
        assert np.abs(gram - np.eye(k)).max() < 1e-12


def test_fewer_draws_are_the_first_of_more() -> None:
    more, fewer = next(haar_frames(30, 3, 100, 7)), next(haar_frames(30, 3, 10, 7))
    np.testing.assert_array_equal(more[:10], fewer)
    assert not np.allclose(fewer, next(haar_frames(30, 3, 10, 8)))


def test_columns_are_the_same_draws() -> None:
    frames, columns = next(haar_frames(12, 2, 5, 0)), next(haar_columns(12, 2, 5, 0))
    np.testing.assert_allclose(columns.reshape(12, 2, 5).transpose(2, 0, 1), frames, atol=1e-6)


def test_chunks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrace.geometry.nulls.CHUNK", 100)
    assert [len(f) for f in haar_frames(10, 3, 8, 1)] == [3, 3, 2]
    assert haar_weights(10, 3, 8, 1).shape == (8, 10)
    np.testing.assert_allclose(haar_weights(10, 3, 8, 1).sum(axis=1), 3)


@pytest.mark.parametrize("case", ORACLE, ids=lambda c: str(c["seed"]))
def test_exact_moments_match_the_oracle(case: dict) -> None:
    x = np.random.Generator(np.random.PCG64(case["seed"])).standard_normal((case["n"], case["d"]))
    x = (x * np.sqrt(np.arange(1, case["d"] + 1) ** -case["power"]) + case["mean"]) * case["scale"]
    values = np.linalg.eigvalsh(np.cov(x, rowvar=False))
    values = values / values.sum()
    assert haar_mean(4, values) == pytest.approx(case["haar_ambient_mean"], rel=1e-9)
    assert haar_sd(4, values) == pytest.approx(case["haar_ambient_sd"], rel=1e-9)


def test_draws_have_the_exact_moments() -> None:
    values = np.arange(1.0, 21) ** -1.5
    energies = haar_weights(20, 4, 4000, 3) @ values
    sd = haar_sd(4, values)
    assert abs(energies.mean() - haar_mean(4, values)) < 4 * sd / np.sqrt(4000)
    assert energies.std() == pytest.approx(sd, rel=0.06)


def test_variance_weighted_frames_leave_the_tangent_and_follow_variance() -> None:
    rng = np.random.default_rng(0)
    covariance = np.diag(np.r_[100.0, 50.0, np.full(4, 10.0), np.full(24, 0.1)])
    tangent = np.eye(30)[:, :2]
    frames = variance_weighted_frames(root(covariance), tangent, 60, 0)
    assert frames is not None
    assert np.abs(np.matmul(frames.swapaxes(1, 2), frames) - np.eye(2)).max() < 1e-10
    assert np.abs(frames[:, :2]).max() < 1e-12
    assert (frames[:, 2:6] ** 2).sum(axis=(1, 2)).mean() > 1.6
    thin = rng.standard_normal((30, 3))
    assert variance_weighted_frames(root(thin @ thin.T), np.linalg.qr(thin)[0][:, :2], 10, 0) is None


def test_p_value_counts_ties_and_never_reaches_zero() -> None:
    null = np.array([1.0, 2.0, 3.0])
    assert p_value(null, 2.0) == 0.75
    assert p_value(null, 4.0) == 0.25
    assert p_value(np.ones(19), 1 + 1e-15) == 1.0


def test_near_square_stacks_are_orthonormal() -> None:
    stack = np.random.default_rng(0).standard_normal((20, 6, 6))
    q = orthonormal(stack)
    assert np.abs(np.matmul(q.swapaxes(1, 2), q) - np.eye(6)).max() < 1e-12


def test_a_null_that_does_not_fit() -> None:
    with pytest.raises(ConfigError, match="rank 5 does not fit in 4"):
        next(haar_frames(4, 5, 1, 0))
