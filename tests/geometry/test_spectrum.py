"""Spectral measures against closed forms and against the definitions computed from singular values."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.geometry.spectrum import (
    alpha_req,
    participation_ratio,
    partition_ratio,
    rank_me,
    sigma1_share,
    spectral_entropy_rank,
    spectrum,
)
from isotrace.geometry.undefined import Undefined


def second_moment(rows: np.ndarray) -> np.ndarray:
    return rows.T @ rows / len(rows)


def test_flat_spectrum_fills_every_direction() -> None:
    flat = np.full(16, 0.3)
    assert sigma1_share(flat) == pytest.approx(1 / 16)
    for rank in (rank_me, spectral_entropy_rank, participation_ratio):
        assert rank(flat) == pytest.approx(16)
    assert alpha_req(flat) == pytest.approx(0, abs=1e-12)


def test_one_direction_has_rank_one() -> None:
    rows = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 3.0])
    values = spectrum(second_moment(rows))
    assert sigma1_share(values) == pytest.approx(1)
    for rank in (rank_me, spectral_entropy_rank, participation_ratio):
        assert rank(values) == pytest.approx(1)


def test_rankme_and_sigma1_share_are_those_of_the_singular_values() -> None:
    rows = np.random.default_rng(0).normal(size=(40, 12)) * np.arange(1, 13) + 2
    singular = np.linalg.svd(rows, compute_uv=False)
    share = singular / singular.sum()
    values = spectrum(second_moment(rows))
    assert rank_me(values) == pytest.approx(np.exp(-np.sum(share * np.log(share))), rel=1e-9)
    assert sigma1_share(values) == pytest.approx(singular[0] ** 2 / np.sum(singular**2), rel=1e-9)


def test_entropy_rank_of_two_eigenvalues() -> None:
    assert spectral_entropy_rank(np.array([0.75, 0.25])) == pytest.approx(
        np.exp(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    )


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0])
def test_alpha_req_finds_the_exponent(exponent: float) -> None:
    assert alpha_req(7.0 * np.arange(1, 101) ** -exponent) == pytest.approx(exponent)


def test_fewer_rows_than_directions_leave_exact_zeros() -> None:
    rows = np.random.default_rng(1).normal(size=(5, 30))
    values = spectrum(second_moment(rows))
    assert np.count_nonzero(values) == 5
    assert rank_me(values) <= 5


def test_partition_ratio_takes_eigenvectors_as_columns() -> None:
    """By hand, on a cloud whose eigenvector matrix is not symmetric: rows for columns gives another number."""
    rows = np.random.default_rng(2).normal(size=(50, 3)) @ np.array([[2.0, 0.3, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 0.2]])
    vectors = np.linalg.eigh(rows.T @ rows)[1]
    z = [np.exp(sign * rows @ vectors[:, j]).sum() for j in range(3) for sign in (1, -1)]
    assert partition_ratio(rows, vectors) == pytest.approx(min(z) / max(z))
    assert partition_ratio(rows, vectors) != pytest.approx(partition_ratio(rows, vectors.T), rel=1e-3)


def test_partition_ratio_of_a_symmetric_cloud_is_one_and_long_rows_do_not_overflow() -> None:
    cross = np.concatenate([np.eye(4), -np.eye(4)])
    assert partition_ratio(cross, np.eye(4)) == pytest.approx(1)
    assert partition_ratio(np.array([[1e4, 0.0], [0.0, 1.0]]), np.eye(2)) == 0.0


@settings(max_examples=30)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-4, 1e4))
def test_rotation_and_scale_do_not_matter(seed: int, scale: float) -> None:
    random = np.random.default_rng(seed)
    rows = random.normal(size=(40, 8)) * np.arange(1, 9)
    turned = scale * rows @ np.linalg.qr(random.normal(size=(8, 8)))[0]
    for measure in (sigma1_share, rank_me, spectral_entropy_rank, participation_ratio, alpha_req):
        assert measure(spectrum(second_moment(turned))) == pytest.approx(measure(spectrum(second_moment(rows))))


def test_no_spread_has_no_value() -> None:
    for measure in (sigma1_share, rank_me, spectral_entropy_rank, participation_ratio):
        with pytest.raises(Undefined, match="no spread"):
            measure(np.zeros(4))
    with pytest.raises(Undefined, match="three non-zero eigenvalues"):
        alpha_req(np.array([1.0, 0.5, 0.0]))
