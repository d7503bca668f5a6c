"""Local tangents on surfaces whose tangents are known."""

import numpy as np
import pytest

from isotrace.geometry.local_tangents import local_tangents
from isotrace.geometry.overlap import mean_overlap
from isotrace.geometry.subspaces import leading
from isotrace.geometry.undefined import Undefined

HOOD = {"neighbours": 20, "points": 40, "seed": 0}


def rotation(d, seed=3):
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((d, d)))[0]


def circle(n, d, radius=10.0):
    angle = np.linspace(0, 2 * np.pi, n, endpoint=False)
    rows = np.zeros((n, d))
    rows[:, 0], rows[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
    return rows + 1e-3 * np.random.default_rng(0).standard_normal((n, d))


def test_on_a_plane_every_local_tangent_is_the_plane():
    rng, basis = np.random.default_rng(1), rotation(12)[:, :2]
    rows = rng.standard_normal((400, 2)) @ basis.T + 1e-4 * rng.standard_normal((400, 12)) + 5
    frames = local_tangents(rows, rank=2, **HOOD)
    assert frames.shape == (40, 12, 2)
    assert mean_overlap(list(frames), basis, draws=19, seed=0).overlap > 0.999


def test_on_a_circle_they_turn_while_the_whole_spans_two_dimensions():
    rows = circle(500, 10)
    frames = local_tangents(rows, rank=1, **HOOD)
    whole = leading(np.cov(rows, rowvar=False), 2)
    np.testing.assert_allclose(np.linalg.norm(frames[:, :, 0] @ whole, axis=1), 1, atol=1e-3)
    first = mean_overlap(list(frames), whole[:, :1], draws=19, seed=0)
    assert first.overlap == pytest.approx(0.5, abs=0.15)  # the mean of cos^2 over all directions of a plane


def test_in_a_round_cloud_they_are_unrelated_to_any_basis():
    rows = np.random.default_rng(2).standard_normal((600, 20))
    frames = local_tangents(rows, rank=3, **HOOD)
    found = mean_overlap(list(frames), rotation(20)[:, :3], draws=99, seed=0)
    assert abs(found.z) < 4
    assert found.haar_mean == pytest.approx(3 / 20)


def test_copies_are_no_neighbours_and_a_turn_turns_the_tangents():
    rows = circle(200, 6)
    frames = local_tangents(rows, rank=1, **HOOD)
    np.testing.assert_array_equal(local_tangents(np.repeat(rows, 30, axis=0), rank=1, **HOOD), frames)
    turn = np.eye(6)[::-1] * -1
    moved = local_tangents(rows @ turn + 3, rank=1, neighbours=20, points=200, seed=0)
    all_frames = local_tangents(rows, rank=1, neighbours=20, points=200, seed=0)

    def mean_projector(found):
        return np.einsum("pdk,pek->de", found, found) / len(found)

    np.testing.assert_allclose(mean_projector(moved), turn.T @ mean_projector(all_frames) @ turn, atol=1e-6)


def test_what_a_neighbourhood_does_not_determine_is_missing():
    line = np.outer(np.arange(100.0), np.ones(5))
    frames = local_tangents(line, rank=3, **HOOD)
    assert np.isfinite(frames[:, :, 0]).all()
    assert np.isnan(frames[:, :, 1:]).all()
    assert local_tangents(np.random.default_rng(0).standard_normal((50, 4)), rank=6, **HOOD).shape == (40, 4, 6)


def test_too_few_different_rows_are_a_reason():
    rows = np.repeat(np.random.default_rng(0).standard_normal((20, 5)), 10, axis=0)
    with pytest.raises(Undefined, match="20 different rows"):
        local_tangents(rows, rank=2, **HOOD)
