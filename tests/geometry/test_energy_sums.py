"""The energy table of linear maps, and from moments of rows that were not kept."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from energy_cases import SITES, SPEC, D, N, basis, bucket, one

from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import (
    energy_table,
)
from isotrace.geometry.moments import Moments, empty, moments
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.summed import BucketMoments, MapMoments

MAPS = ("block.0:q", "block.0:up")


def map_basis(kind: str = "fixed") -> Basis:
    """For each map, four axes of its own."""
    vectors = np.stack([np.eye(D)[:, :4], np.eye(D)[:, 4:8]])
    return Basis(kind, "pca", MAPS, vectors, np.ones((2, 4)), np.array([N, N]))


def weights(matrix: np.ndarray | None = None, tokens: int = 100) -> dict[str, MapMoments]:
    rng = np.random.default_rng(2)
    g = rng.standard_normal((24, D)) * np.arange(1, D + 1) ** -0.5 if matrix is None else matrix
    inputs = moments(rng.standard_normal((N, D)) * np.arange(1, D + 1) ** -0.3 + 2)
    return {name: MapMoments(moments(g), inputs, tokens) for name in MAPS}


def with_weights(found: dict[str, MapMoments], bases: list[Basis]) -> pd.DataFrame:
    frame = energy_table(bucket(), [basis(), *bases], SPEC, variance={}, weights=found)
    return frame[frame.quantity.str.startswith("weight_gradient")]


def test_weight_gradients_are_rows_of_their_block_in_the_basis_of_their_map() -> None:
    g = np.random.default_rng(2).standard_normal((24, D)) * np.arange(1, D + 1) ** -0.5
    frame = with_weights(weights(g), [map_basis(), map_basis("moving")])
    assert set(frame.quantity) == {"weight_gradient:q", "weight_gradient:up"}
    assert set(frame.site) == {"block.0"}
    assert set(frame.n_tokens) == {100}
    assert len(frame) == 2 * 2 * 2 * 3
    share = np.square(g).sum(axis=0) / np.square(g).sum()
    for quantity, first in (("weight_gradient:q", 0), ("weight_gradient:up", 4)):
        for rank in (2, 4):
            energy = share[first : first + rank].sum()
            cell = {"quantity": quantity, "rank": rank, "basis": "fixed"}
            ambient, complement = (one(frame, **cell, null_space=s) for s in ("ambient", "complement"))
            assert ambient.energy == pytest.approx(energy, rel=1e-10)
            assert ambient.ratio == pytest.approx(energy * D / rank, rel=1e-10)
            assert ambient.enrichment == pytest.approx(ambient.ratio, rel=1e-10)
            assert complement.ratio == pytest.approx(energy * (D - rank) / (rank * (1 - energy)), rel=1e-10)
            weighted = one(frame, **cell, null_space="variance_weighted")
            assert weighted.n_nulls == 49
            assert 0 < weighted.p_value <= 1
    assert frame[["energy_lo", "energy_hi"]].isna().all(axis=None)
    assert frame.reason.str.contains("no interval for weight gradients").all()


def test_a_map_without_tokens_gradient_or_basis_says_so_or_has_no_rows() -> None:
    few = with_weights(weights(tokens=31), [map_basis()])
    assert set(few.reason) == {"31 rows, fewer than min_rows 32"}
    assert few.energy.isna().all()
    zero = with_weights(weights(np.zeros((24, D))), [map_basis()])
    assert set(zero.reason) == {"the weight gradient is zero"}
    assert with_weights(weights(), []).empty
    unread = {name: MapMoments(found.gradient, empty(D), 100) for name, found in weights().items()}
    frame = with_weights(unread, [map_basis()])
    missing = frame[frame.null_space == "variance_weighted"]
    assert missing.reason.str.contains("activation variance outside the basis").all()
    assert missing.p_value.isna().all()


def test_other_rows_do_not_depend_on_weights() -> None:
    alone = energy_table(bucket(), [basis()], SPEC, variance={})
    both = energy_table(bucket(), [basis(), map_basis()], SPEC, variance={}, weights=weights())
    pd.testing.assert_frame_equal(both[: len(alone)], alone, check_exact=True)


def summed(b: Bucket, groups: int) -> BucketMoments:
    """The moments of a bucket's rows, whole and by groups of its 25 sequences."""

    def whole(site: str, quantity: Quantity) -> Moments:
        return moments(b.rows(site, quantity).values)

    def by_group(site: str, quantity: Quantity) -> Iterator[Moments]:
        rows = b.rows(site, quantity)
        return (moments(rows.values[rows.sequence * groups // 25 == g]) for g in range(groups))

    return BucketMoments(b.name, b.sites, whole, by_group)


@pytest.mark.parametrize("centred", [False, True])
def test_moments_of_all_rows_give_the_table_of_the_rows(centred: bool) -> None:
    b, spec = bucket(), SPEC | {"centred": centred}
    variance = {s: np.cov(np.asarray(b.activations[i]), rowvar=False) for i, s in enumerate(SITES)}
    rows, found = (energy_table(x, [basis(), basis("moving")], spec, variance=variance) for x in (b, summed(b, 25)))
    bounds = ["energy_lo", "energy_hi"]
    pd.testing.assert_frame_equal(found.drop(columns=bounds), rows.drop(columns=bounds), rtol=1e-7)
    assert ((found.energy_lo < found.energy) & (found.energy < found.energy_hi)).all()
    widths = (found.energy_hi - found.energy_lo) / (rows.energy_hi - rows.energy_lo)
    assert widths.between(1 / 1.5, 1.5).all()


def test_moments_without_groups_or_rows_say_so() -> None:
    b = bucket()
    single = energy_table(summed(b, 1), [basis()], SPEC, variance={})
    assert single.energy.notna().all()
    assert single[["energy_lo", "energy_hi"]].isna().all(axis=None)
    assert single.reason.str.contains("no interval: all rows are from one group of sequences").all()
    none = BucketMoments(b.name, SITES, lambda *_: empty(D), lambda *_: iter(()))
    frame = energy_table(none, [basis()], SPEC, variance={})
    assert frame.energy.isna().all()
    assert set(frame.reason) == {"0 rows, fewer than min_rows 32"}
    still = BucketMoments(b.name, SITES, lambda *_: moments(np.zeros((40, D))), lambda *_: iter(()))
    assert set(energy_table(still, [basis()], SPEC, variance={}).reason) == {"the rows have no energy"}
