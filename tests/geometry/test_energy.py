"""Energy fractions, their nulls, and the table of a bucket."""

import numpy as np
import pandas as pd
import pytest
from energy_cases import SITES, SPEC, D, N, basis, bucket, one, table

from isotrace.errors import ConfigError
from isotrace.geometry.energy import (
    ambient_null,
    complement_null,
    energy_fraction,
    energy_table,
    enrichment,
    variance_weighted_null,
)
from isotrace.geometry.nulls import root, variance_weighted_frames
from isotrace.geometry.rows import Bucket

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
