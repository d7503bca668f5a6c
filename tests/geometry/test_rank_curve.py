"""Energy over rank: known spectra, agreement with the energy table, intervals of ranks, gaps with reasons."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_bucket import SPEC, basis, bucket, haar

from isotrace.geometry.energy import energy_table
from isotrace.geometry.energy_operators import token_operator
from isotrace.geometry.moments import moments
from isotrace.geometry.rank_curve import curve_of, rank_curve_table
from isotrace.geometry.summed import BucketMoments, MapMoments
from isotrace.tables import finish, with_layers

D, K = 16, 8
WHOLE = {**SPEC, "ranks": [2, K]}


def gradients(frame, **wanted):
    wanted = {"site": "embed", "quantity": "gradient", **wanted}
    return frame[np.logical_and.reduce([frame[name] == value for name, value in wanted.items()])]


def values(frame):
    return frame[frame["statistic"] != "energy"].set_index("statistic")["value"].to_dict()


def spectral(weights, n=160):
    """A bucket whose gradients have exactly the second moment diag(weights)."""
    rows = np.tile(np.sqrt(np.array(weights) * D)[:, None] * np.eye(D), (n // D, 1))
    return bucket(np.random.default_rng(0), n=n, gradients=np.stack([rows, rows]))


def test_an_even_gradient_has_the_isotropic_value_of_every_statistic():
    frame = gradients(rank_curve_table(spectral(np.ones(D)), [basis(np.eye(D)[:, :K])], WHOLE))
    curve = frame[frame["statistic"] == "energy"]
    assert curve["rank"].tolist() == list(range(1, K + 1))
    assert curve["value"].to_numpy() == pytest.approx(np.arange(1, K + 1) / D, rel=1e-12)
    assert curve["isotropic"].to_numpy() == pytest.approx(np.arange(1, K + 1) / D, rel=1e-15)
    found = frame[frame["statistic"] != "energy"].set_index("statistic")
    assert found.loc["area", "value"] == pytest.approx((K + 1) / (2 * D), rel=1e-12)
    assert found.loc["area", "isotropic"] == (K + 1) / (2 * D)
    assert found.loc["rank_50", "value"] == found.loc["rank_50", "isotropic"] == K
    assert found.loc["rank_90", "isotropic"] == np.ceil(0.9 * D)
    assert np.isnan(found.loc["rank_90", "value"])
    assert found.loc["rank_90", "reason"] == "the energy does not reach 90% by rank 8"


def test_a_known_spectrum_by_hand():
    weights = np.array([8.0, 0, 4, 2, *np.full(12, 2 / 12)])
    frame = gradients(rank_curve_table(spectral(weights), [basis(np.eye(D)[:, :K])], WHOLE))
    curve = frame[frame["statistic"] == "energy"]["value"].to_numpy()
    assert curve[:4] == pytest.approx([8 / 16, 8 / 16, 12 / 16, 14 / 16], rel=1e-12)
    assert values(frame)["rank_50"] == 1
    assert values(frame)["rank_90"] == 7
    assert values(frame)["area"] == pytest.approx(curve.mean(), rel=1e-12)


def test_the_curve_at_a_rank_is_the_row_of_the_energy_table():
    rng = np.random.default_rng(1)
    rows, bases = bucket(rng), [basis(haar(rng, D, K)), basis(haar(rng, D, K), kind="moving")]
    spec = {**WHOLE, "null_spaces": ["complement"], "draws": {"complement": 9}}
    energies = energy_table(rows, bases, spec, variance={})
    curves = rank_curve_table(rows, bases, spec)
    keys = ["site", "quantity", "basis", "method", "rank"]
    both = energies.merge(curves[curves["statistic"] == "energy"], on=keys)
    assert len(both) == len(energies) == 2 * 2 * 2 * 2
    for here, there in (("energy", "value"), ("energy_lo", "lo"), ("energy_hi", "hi"), ("n_tokens_x", "n_tokens_y")):
        assert both[here].to_numpy() == pytest.approx(both[there].to_numpy(), rel=1e-12)


def test_the_interval_of_a_rank_is_that_of_the_resampled_ranks():
    rng = np.random.default_rng(2)
    rows = bucket(rng, gradients=rng.standard_normal((2, 160, D)) * np.linspace(2, 0.2, D))
    vectors = np.eye(D)[:, :K]
    found = gradients(rank_curve_table(rows, [basis(vectors)], WHOLE)).set_index("statistic").loc["rank_50"]
    drawn = token_operator(rows, "embed", "gradient", [vectors], WHOLE).replicates.fractions[0]
    ranks = np.sort((drawn < 0.5).sum(axis=1) + 1)
    tail = int(0.025 * len(ranks))
    assert ranks[tail - 1] <= found["lo"] <= ranks[tail + 1]
    assert ranks[-tail - 2] <= found["hi"] <= ranks[-tail]
    assert found["lo"] <= found["value"] <= found["hi"]


@given(seed=st.integers(0, 50), scale=st.floats(1e-3, 1e3))
def test_turning_and_scaling_rows_and_basis_together_changes_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    rows, vectors, turn = rng.standard_normal((60, D)), haar(rng, D, K), haar(rng, D, D)
    before = curve_of(rows.T @ rows, vectors)
    turned = scale * rows @ turn.T
    assert curve_of(turned.T @ turned, turn @ vectors) == pytest.approx(before, rel=1e-9)
    assert (np.diff(before) >= 0).all()
    assert before[-1] <= 1


def test_moments_of_every_token_give_the_same_curve_with_an_interval_of_their_own():
    rng = np.random.default_rng(3)
    rows, vectors = bucket(rng, sites=("embed",)), [basis(haar(rng, D, K), ("embed",))]

    def summed(site, quantity):
        return moments(rows.rows(site, quantity).values)

    def groups(site, quantity):
        found = rows.rows(site, quantity)
        return (moments(found.values[found.sequence % 10 == g]) for g in range(10))

    whole = BucketMoments("b0", ("embed",), summed, groups)
    by_rows, by_moments = (rank_curve_table(tokens, vectors, WHOLE) for tokens in (rows, whole))
    assert by_moments["value"].to_numpy() == pytest.approx(by_rows["value"].to_numpy(), rel=1e-9, nan_ok=True)
    known = by_moments[by_moments["reason"] == ""]
    assert len(known) >= 2 * (K + 1)
    assert known["value"].between(known["lo"], known["hi"]).all()
    area = by_moments[by_moments["statistic"] == "area"]
    assert (area["hi"] - area["lo"]).between(1e-3, 0.2).all()


def test_weight_gradients_have_a_curve_without_an_interval():
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((40, D))
    maps = {"block.0:mlp.up": MapMoments(moments(matrix), moments(matrix), 100)}
    vectors = basis(np.eye(D)[:, :K], ("embed", "block.0", "block.0:mlp.up"))
    frame = rank_curve_table(bucket(rng), [vectors], WHOLE, weights=maps)
    found = gradients(frame, site="block.0", quantity="weight_gradient:mlp.up", statistic="energy")
    expected = np.cumsum(np.square(matrix[:, :K]).sum(axis=0)) / np.square(matrix).sum()
    assert found["value"].to_numpy() == pytest.approx(expected, rel=1e-12)
    assert set(found["reason"]) == {"no interval for weight gradients"}
    finish("rank_curve", with_layers(frame, ("embed", "block.0")), scope="checkpoint")


def test_gaps_have_reasons_and_the_table_is_the_declared_one():
    rng = np.random.default_rng(5)
    vectors = haar(rng, D, K)
    vectors[:, 6:] = np.nan
    few = replace(bucket(rng), gradients=np.zeros((2, 160, D)))
    frame = rank_curve_table(few, [basis(vectors)], WHOLE)
    finish("rank_curve", with_layers(frame, ("embed", "block.0")), scope="checkpoint")
    assert set(gradients(frame)["reason"]) == {"0 rows, fewer than min_rows 32"}
    short = gradients(frame, quantity="activation")
    assert short[short["value"].isna()]["rank"].min() == 7
    assert short.set_index("statistic").loc["area", "reason"] == "the basis has 6 components"
    assert short.set_index("statistic").loc["rank_90", "reason"].endswith("rank 8; the basis has 6 components")


def test_one_sequence_has_values_and_no_interval():
    rng = np.random.default_rng(6)
    frame = gradients(rank_curve_table(bucket(rng, sequences=1), [basis(np.eye(D)[:, :K])], WHOLE))
    curve = frame[frame["statistic"].isin(["energy", "area"])]
    assert curve["value"].notna().all()
    assert curve["lo"].isna().all()
    assert set(curve["reason"]) == {"no interval: all rows are from one sequence"}
