"""Random subspaces: orthonormal, reproducible, and with the exact moments."""

import json
from pathlib import Path

import numpy as np
import pytest

from isotrace.errors import ConfigError
from isotrace.geometry.energy import ambient_null, complement_null, energy_fraction, variance_weighted_null
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


def test_sampled_complement_and_ambient_nulls_agree_with_the_exact_moments() -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((300, 24)) * np.arange(1, 25) ** -0.7
    operator, tangent, draws = rows.T @ rows / 300, np.linalg.qr(rng.standard_normal((24, 3)))[0], 4000
    for null in (
        complement_null(operator, tangent, draws, 0),
        ambient_null(np.linalg.eigvalsh(operator), 3, draws, 0),
    ):
        assert abs(null.draws.mean() - null.mean) < 4 * null.sd / np.sqrt(draws)
        assert null.draws.std() == pytest.approx(null.sd, rel=0.06)


def test_the_variance_weighted_null_is_that_of_its_definition() -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((200, 20)) * np.arange(1, 21) ** -0.7
    covariance, operator = np.cov(rows, rowvar=False), np.diag(np.linspace(1, 3, 20))
    tangent = np.linalg.qr(rng.standard_normal((20, 2)))[0]
    frames = variance_weighted_frames(root(covariance), tangent, 3000, 0)
    assert frames is not None
    values, vectors = np.linalg.eigh(covariance)
    projector, energies = np.eye(20) - tangent @ tangent.T, []
    for _ in range(3000):
        normal = np.linalg.qr(projector @ (vectors * np.sqrt(values)) @ rng.standard_normal((20, 2)))[0]
        energies.append(np.trace(normal.T @ operator @ normal) / np.trace(operator))
    found = variance_weighted_null(operator, frames).draws
    error = np.hypot(found.std(), np.std(energies)) / np.sqrt(3000)
    assert abs(found.mean() - np.mean(energies)) < 4 * error
    assert found.std() == pytest.approx(np.std(energies), rel=0.1)


@pytest.mark.parametrize("kept", [1.0, 1e-30])
def test_a_root_gives_the_covariance_back_at_its_own_rank(kept: float) -> None:
    rng = np.random.default_rng(3)
    thin = rng.standard_normal((12, 5)) * np.sqrt(kept)
    half = root(thin @ thin.T)
    assert half.shape == (12, 5)
    np.testing.assert_allclose(half @ half.T, thin @ thin.T, atol=1e-12 * kept)
    assert root(np.zeros((4, 4))).shape == (4, 0)


def test_single_precision_frames_have_the_energies_of_double_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((100, 30)) * np.arange(1, 31) ** -2.0
    half, tangent, operator = root(np.cov(rows, rowvar=False)), np.eye(30)[:, :3], rows.T @ rows
    monkeypatch.setattr("isotrace.geometry.nulls.CHUNK", 30 * 3 * 10)
    frames = variance_weighted_frames(half, tangent, 25, 0)
    assert frames is not None
    assert frames.dtype == np.float32
    assert np.abs(np.matmul(frames.swapaxes(1, 2), tangent)).max() < 1e-6
    exact = np.linalg.qr(frames.astype(np.float64))[0]
    expected = np.einsum("bdk,de,bek->b", exact, operator, exact) / np.trace(operator)
    np.testing.assert_allclose(variance_weighted_null(operator, frames).draws, expected, rtol=1e-4)
    first = variance_weighted_frames(half, tangent, 10, 0)
    np.testing.assert_allclose(first, frames[:10], atol=1e-6)


@pytest.mark.parametrize(("draws", "floor"), [(20, 1 / 21), (999, 1 / 1000)])
def test_draws_set_the_smallest_p_value(draws: int, floor: float) -> None:
    operator = np.diag(np.r_[1000.0, 900.0, np.ones(30)])
    null = complement_null(operator, np.eye(32)[:, :2], draws, 0)
    assert p_value(null.draws, energy_fraction(operator, np.eye(32)[:, :2])) == pytest.approx(floor)


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
