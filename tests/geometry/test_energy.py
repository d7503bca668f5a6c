"""Energy fractions, their nulls, and the table of a bucket."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrace.errors import ConfigError
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import (
    ambient_null,
    complement_null,
    energy_fraction,
    energy_table,
    enrichment,
    variance_weighted_null,
)
from isotrace.geometry.moments import Moments, empty, moments
from isotrace.geometry.nulls import root, variance_weighted_frames
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.summed import BucketMoments, MapMoments

SITES = ("embed", "block.0")
D, N = 16, 200
SPEC: dict[str, Any] = {
    "seed": 0,
    "ranks": [2, 4],
    "null_spaces": ["complement", "ambient", "variance_weighted"],
    "draws": {"complement": 199, "ambient": 199, "variance_weighted": 49},
    "centred": False,
    "resamples": 200,
    "confidence": 0.95,
    "min_rows": 32,
}

COLUMNS = {
    "site",
    "bucket",
    "quantity",
    "basis",
    "method",
    "rank",
    "n_tokens",
    "energy",
    "energy_lo",
    "energy_hi",
    "enrichment",
    "null_space",
    "null_mean",
    "null_mean_exact",
    "null_sd_exact",
    "ratio",
    "z",
    "p_value",
    "n_nulls",
    "reason",
}


def bucket(gradients: np.ndarray | None = None, sequences: int = 25) -> Bucket:
    rng = np.random.default_rng(0)
    spread = np.arange(1, D + 1) ** -0.5
    activations = rng.standard_normal((2, N, D)) * spread + 5
    drawn = rng.standard_normal((2, N, D)) * spread**2 * 1e-4
    g = (drawn if gradients is None else gradients).astype(np.float32)
    ids = np.arange(N)
    return Bucket("b1", SITES, activations, g, ids, ids % sequences, ids, np.ones(N), np.zeros(N, bool))


def basis(kind: str = "fixed", method: str = "pca", vectors: np.ndarray | None = None) -> Basis:
    v = np.stack([np.eye(D)[:, :4]] * 2) if vectors is None else vectors
    return Basis(kind, method, SITES, v, np.ones((2, 4)), np.array([N, N]))


def table(b: Bucket, bases: list[Basis], **changes: Any) -> pd.DataFrame:
    variance = {s: np.cov(np.asarray(b.activations[i]), rowvar=False) for i, s in enumerate(b.sites)}
    return energy_table(b, bases, SPEC | changes, variance=variance)


def one(frame: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_energy_of_known_operators() -> None:
    g = np.diag([6.0, 3.0, 1.0, 0.0])
    assert energy_fraction(g, np.eye(4)[:, :1]) == pytest.approx(0.6)
    assert enrichment(0.6, 1, 4) == pytest.approx(2.4)
    turned = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    assert energy_fraction(turned @ g @ turned.T, turned[:, :2]) == pytest.approx(0.9)


def test_nulls_match_drawing_the_subspaces() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((40, D)) * np.arange(1, D + 1) ** -0.7
    g, t = x.T @ x, np.linalg.qr(rng.standard_normal((D, 3)))[0]
    space = np.linalg.qr(np.hstack([t, rng.standard_normal((D, D - 3))]))[0][:, 3:]
    for null, axes in (
        (complement_null(g, t, 3000, 0), space),
        (ambient_null(np.linalg.eigvalsh(g), 3, 3000, 0), np.eye(D)),
    ):
        drawn = [
            energy_fraction(g, axes @ np.linalg.qr(rng.standard_normal((axes.shape[1], 3)))[0]) for _ in range(3000)
        ]
        assert null.draws.mean() == pytest.approx(np.mean(drawn), abs=5 * null.sd / np.sqrt(3000))
        assert null.draws.std() == pytest.approx(np.std(drawn), rel=0.1)
        assert np.mean(drawn) == pytest.approx(null.mean, abs=4 * null.sd / np.sqrt(3000))
    frames = variance_weighted_frames(root(g), t, 5, 0)
    assert frames is not None
    expected = [energy_fraction(g, f) for f in frames]
    np.testing.assert_allclose(variance_weighted_null(g, frames).draws, expected, rtol=1e-10)


def test_table_has_a_row_for_everything_and_the_ratio_is_the_odds() -> None:
    frame = table(bucket(), [basis(), basis("moving")])
    assert len(frame) == 2 * 2 * 2 * 2 * 3
    assert set(frame.columns) == COLUMNS
    complement = frame[frame.null_space == "complement"]
    odds = complement.energy * (D - complement["rank"]) / (complement["rank"] * (1 - complement.energy))
    np.testing.assert_allclose(complement.ratio, odds, rtol=1e-10)
    ambient = frame[frame.null_space == "ambient"]
    np.testing.assert_allclose(ambient.ratio, ambient.enrichment, rtol=1e-10)
    assert ((frame.energy_lo <= frame.energy) & (frame.energy <= frame.energy_hi)).all()
    assert (frame[frame.null_space != "variance_weighted"].reason == "").all()
    weighted = frame[frame.null_space == "variance_weighted"]
    assert weighted.null_mean_exact.isna().all()
    assert weighted.reason.str.contains("no exact moments").all()
    np.testing.assert_allclose(weighted.ratio, weighted.energy / weighted.null_mean, rtol=1e-12)


def test_activations_are_centred_and_gradients_as_asked() -> None:
    b = bucket(gradients=np.random.default_rng(3).standard_normal((2, N, D)) + np.eye(D)[0] * 10)
    plain, centred = (table(b, [basis()], centred=c) for c in (False, True))
    where = {"site": "embed", "rank": 2, "null_space": "ambient"}
    assert one(plain, quantity="gradient", **where).energy > 0.8
    assert one(centred, quantity="gradient", **where).energy < 0.25
    assert one(plain, quantity="activation", **where).energy < 0.7
    assert one(plain, quantity="activation", **where).energy == one(centred, quantity="activation", **where).energy


def test_zero_gradient_rows_are_not_counted() -> None:
    g = np.random.default_rng(0).standard_normal((2, N, D))
    g[0, ::2] = 0
    g[1, 20:] = 0
    frame = table(bucket(g), [basis()])
    assert set(frame[(frame.quantity == "gradient") & (frame.site == "embed")].n_tokens) == {N // 2}
    few = frame[(frame.quantity == "gradient") & (frame.site == "block.0")]
    assert set(few.reason) == {"20 rows, fewer than min_rows 32"}
    assert few[["energy", "ratio", "p_value", "z"]].isna().all(axis=None)
    assert set(frame[frame.quantity == "activation"].n_tokens) == {N}


def test_degenerate_cases_are_nan_with_a_reason() -> None:
    inside = np.zeros((2, N, D))
    inside[:, :, 0] = np.random.default_rng(0).standard_normal((2, N))
    b = bucket(inside)
    everything = one(table(b, [basis()]), site="embed", quantity="gradient", rank=2, null_space="complement")
    assert everything.energy == pytest.approx(1)
    assert np.isnan(everything.ratio)
    assert everything.reason == "all energy lies in the basis"
    short = np.stack([np.eye(D)[:, :4]] * 2)
    short[:, :, 3] = np.nan
    partial = table(b, [basis(vectors=short)])
    assert set(partial[partial["rank"] == 4].reason) == {"the basis has 3 components, rank 4 asked for"}
    assert partial[partial["rank"] == 2].energy.notna().all()
    single = table(bucket(sequences=1), [basis()])
    assert single.energy_lo.isna().all()
    assert single.reason.str.contains("one sequence").all()
    thin = {s: np.diag(np.r_[1.0, 1.0, 1.0, np.zeros(D - 3)]) for s in SITES}
    frame = energy_table(bucket(), [basis()], SPEC, variance=thin)
    weighted = frame[frame.null_space == "variance_weighted"]
    assert weighted.ratio.isna().all()
    assert weighted.reason.str.contains("fewer than").all()


def test_a_bucket_of_one_row_says_so_without_a_variance() -> None:
    b = bucket()
    lone = Bucket(
        b.name, SITES, b.activations[:, :1], b.gradients[:, :1], *(x[:1] for x in (b.token_id, b.sequence, b.position)),
        b.loss[:1], b.masked[:1],
    )  # fmt: skip
    frame = energy_table(lone, [basis()], SPEC, variance={})
    assert frame.energy.isna().all()
    assert set(frame.reason) == {"1 rows, fewer than min_rows 32"}


def test_nan_always_has_a_reason_and_same_input_gives_same_bytes() -> None:
    frames = [table(bucket(), [basis()]) for _ in range(2)]
    pd.testing.assert_frame_equal(*frames, check_exact=True)
    assert (frames[0][frames[0].isna().any(axis=1)].reason != "").all()


def test_unknown_null_space() -> None:
    with pytest.raises(ConfigError, match=r"energy\.null_spaces: \['uniform'\]"):
        table(bucket(), [basis()], null_spaces=["uniform"])


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
