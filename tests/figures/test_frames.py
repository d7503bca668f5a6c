"""Selecting and aggregating rows for figures: odds intervals, seeds, means, order of names."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from isotrace.errors import ConfigError, DataError
from isotrace.figures import frames


def test_ratio_interval_is_the_energy_interval_in_odds():
    rows = frames.ratios(synthetic.energy(models=("decoder",), buckets=("b0",)))
    factor = (synthetic.WIDTH - synthetic.RANK) / synthetic.RANK
    for column, energy in (("ratio", "energy"), ("ratio_lo", "energy_lo"), ("ratio_hi", "energy_hi")):
        expected = factor * rows[energy] / (1 - rows[energy])
        np.testing.assert_allclose(rows[column], expected, rtol=1e-12)
    np.testing.assert_allclose(rows["null_hi"], 1.18)


def test_ambient_ratio_interval_is_proportional_to_energy():
    energy = synthetic.energy(models=("decoder",), buckets=("b0",)).assign(null_space="ambient")
    energy["ratio"] = energy["enrichment"]
    rows = frames.ratios(energy)
    np.testing.assert_allclose(rows["ratio_lo"], rows["energy_lo"] * synthetic.WIDTH / synthetic.RANK)


@given(st.lists(st.floats(0.01, 100), min_size=1, max_size=8), st.floats(0.1, 10))
def test_geometric_mean_scales_and_ignores_order(ratios, factor):
    rows = pd.DataFrame({"k": "x", "ratio": ratios, "ratio_lo": ratios, "ratio_hi": ratios})
    mean = frames.geometric_mean(rows, ["k"])["ratio"].iloc[0]
    scaled = frames.geometric_mean(rows.assign(ratio=rows["ratio"] * factor)[::-1], ["k"])["ratio"].iloc[0]
    assert scaled == pytest.approx(mean * factor)
    assert min(ratios) * (1 - 1e-9) <= mean <= max(ratios) * (1 + 1e-9)


def seeds(values):
    rows = {"seed": range(len(values)), "value": values}
    return pd.DataFrame(rows).assign(k="x", lo=0.5, hi=1.5, reason="few rows")


def test_one_seed_keeps_its_interval_and_several_give_their_range():
    one = frames.over_seeds(seeds([1.0]), ["k"], "value").iloc[0]
    assert (one["value"], one["lo"], one["hi"], one["interval"]) == (1.0, 0.5, 1.5, "within the run")
    many = frames.over_seeds(seeds([1.0, 4.0, np.nan]), ["k"], "value", log=True).iloc[0]
    assert (many["value"], many["lo"], many["hi"], many["seeds"]) == (pytest.approx(2.0), 1.0, 4.0, 2)


def test_a_value_missing_in_every_seed_keeps_its_reason():
    row = frames.over_seeds(seeds([np.nan]), ["k"], "value").iloc[0]
    assert np.isnan(row["value"])
    assert row["reason"] == "few rows"


def test_two_rows_of_one_seed_are_refused():
    with pytest.raises(DataError, match="2 rows where one is needed"):
        frames.over_seeds(seeds([1.0, 2.0]).assign(seed=0), ["k"], "value")


def test_a_tombstone_concerns_its_bucket_or_every_series():
    rows = pd.DataFrame({"model": "m", "step": 1, "site": "embed", "bucket": ["b0", "b1"], "value": 1.0, "reason": ""})
    lost = pd.DataFrame({"step": [2, 3], "bucket": ["", "b1"]}).assign(model="m", site="", value=np.nan, reason="gone")
    table = pd.concat([rows, lost], ignore_index=True)
    made = frames.with_tombstones(rows, table, line=["site", "bucket"]).iloc[2:]
    assert sorted(zip(made["step"], made["bucket"], strict=True)) == [(2, "b0"), (2, "b1"), (3, "b1")]
    assert set(made["site"]) == {"embed"}
    assert made["value"].isna().all()


def test_names_run_in_natural_order_and_sites_by_depth():
    assert frames.in_order(["b10", "b2", "b0"]) == ["b0", "b2", "b10"]
    sites = pd.DataFrame({"site": ["final_norm", "block.10", "embed", "block.2"], "layer": [11, 10, -1, 2]})
    assert frames.sites_in_order(sites) == ["embed", "block.2", "block.10", "final_norm"]
    assert frames.end_blocks(sites, {}) == ["block.2", "block.10"]
    assert frames.end_blocks(sites, {"sites": ["embed"]}) == ["embed"]


@given(st.integers(1, 40), st.integers(1, 10))
def test_spread_keeps_both_ends(n, most):
    names = [f"s{i}" for i in range(n)]
    kept = frames.spread(names, most)
    assert len(kept) <= most
    assert kept[-1] == names[-1]
    assert most == 1 or kept[0] == names[0]


def test_a_rank_that_was_not_computed_is_refused():
    energy = pd.DataFrame({"rank": [4, 16]})
    assert frames.rank_of(energy, {}) == 4
    with pytest.raises(ConfigError, match="rank: 8"):
        frames.rank_of(energy, {"rank": 8})
    with pytest.raises(DataError, match="'energy'"):
        frames.table({}, "energy")
