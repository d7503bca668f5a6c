"""Removal by expansion against projecting the rows and starting over."""

import json
from pathlib import Path

import numpy as np
import pytest

from isotrace.geometry.isotropy import isoscore, sums_of
from isotrace.geometry.jackknife import group_labels
from isotrace.geometry.moments import moments
from isotrace.geometry.removal import cloud, first_frames, haar_removed, haar_ustat, outside, replicates, without

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "isotropy.json").read_text())["rows"]
NAMES = ("n", "trace", "frobenius", "ustat", "square", "q4")


@pytest.mark.parametrize("case", ORACLE, ids=lambda c: str(c["seed"]))
def test_matches_the_oracle(case: dict) -> None:
    d = case["d"]
    x = np.random.Generator(np.random.PCG64(case["seed"])).standard_normal((case["n"], d))
    x = (x * np.sqrt(np.arange(1, d + 1) ** -case["power"]) + case["mean"]) * case["scale"]
    q = np.linalg.qr(np.random.Generator(np.random.PCG64(case["removed_seed"])).standard_normal((d, 4)))[0]
    base = without(cloud(x, np.arange(case["n"]), 20), q).base
    ambient, complement = (float(isoscore(base.trace[0], base.frobenius[0], dims)) for dims in (d, d - 4))
    assert ambient == pytest.approx(case["isoscore_after_removal_ambient"], rel=1e-9)
    assert complement == pytest.approx(case["isoscore_after_removal_complement"], rel=1e-9)


@pytest.fixture
def rows() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 14)) * np.arange(1, 15) ** -0.8 * np.exp(rng.standard_normal((90, 1))) + 3
    return x, rng.integers(0, 25, 90)


@pytest.mark.parametrize("k", [0, 1, 4])
def test_every_replicate_equals_starting_over(rows: tuple[np.ndarray, np.ndarray], k: int) -> None:
    x, sequence = rows
    rng = np.random.default_rng(1)
    frames = np.stack([np.linalg.qr(rng.standard_normal((14, max(k, 1))))[0][:, :k] for _ in range(3)])
    found = replicates(cloud(x, sequence, 5), frames) if k else cloud(x, sequence, 5).base
    label = group_labels(sequence, 5)
    for b, frame in enumerate(frames):
        left = x - x @ frame @ frame.T
        for g in range(-1, 5):
            expected = sums_of(moments(left[label != g]))
            for name in NAMES:
                value = getattr(found, name)[b, g + 1] if k else getattr(found, name)[g + 1]
                assert value == pytest.approx(float(getattr(expected, name)), rel=1e-9)


def test_random_removals_agree_with_their_own_frames(rows: tuple[np.ndarray, np.ndarray]) -> None:
    c = cloud(*rows, 5)
    tangent = np.linalg.eigh(c.covariance)[1][:, -3:]
    for basis in (tangent, tangent[:, :0]):
        out = outside(c.covariance, basis)
        removed = haar_removed(c.covariance, out, 2, 40, 0)
        frames = first_frames(out, 2, 40, 0)
        assert np.abs(np.matmul(frames.swapaxes(1, 2), basis)).max(initial=0) < 1e-12
        expected = replicates(c, frames)
        np.testing.assert_allclose(removed[0], expected.trace[:, 0], rtol=1e-10)
        np.testing.assert_allclose(removed[1], expected.frobenius[:, 0], rtol=1e-10)
        ustat = haar_ustat(c, out, removed, 2, 40, 0)
        np.testing.assert_allclose(ustat, expected.ustat[:, 0], rtol=1e-5)


def test_draws_avoid_the_tangent_even_where_the_cloud_is_flat() -> None:
    x = np.zeros((40, 10))
    x[:, :2] = np.random.default_rng(0).standard_normal((40, 2))
    tangent = np.eye(10)[:, [0, 5]]
    frames = first_frames(outside(cloud(x, np.arange(40), 5).covariance, tangent), 3, 20, 0)
    assert np.abs(frames[:, [0, 5]]).max() < 1e-12


@pytest.mark.parametrize("shape", [(300, 4), (60, 200)])
def test_tall_and_wide_groups_start_over_to_the_same(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(3)
    x, sequence = rng.standard_normal(shape) + 2, np.arange(shape[0]) // 3
    frame = np.linalg.qr(rng.standard_normal((shape[1], 2)))[0]
    found = replicates(cloud(x, sequence, 5), frame[None])
    left, label = x - x @ frame @ frame.T, group_labels(sequence, 5)
    for g in range(5):
        expected = sums_of(moments(left[label != g]))
        for name in NAMES:
            assert getattr(found, name)[0, g + 1] == pytest.approx(float(getattr(expected, name)), rel=1e-9)


def test_a_row_that_outweighs_all_others_leaves_exact_sums_or_none() -> None:
    """Without it a sum of squares is some 1e-20 of the whole: differences would be rounding."""
    rng = np.random.default_rng(4)
    x, sequence = rng.standard_normal((40, 6)), np.arange(40)
    x[0] *= 1e6
    base, label = cloud(x, sequence, 5).base, group_labels(sequence, 5)
    expected = sums_of(moments(x[label != 0]))
    assert base.frobenius[1] == pytest.approx(float(expected.frobenius), rel=1e-2)
    frame = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    assert np.isnan(replicates(cloud(x, sequence, 5), frame[None]).frobenius[0, 1])
