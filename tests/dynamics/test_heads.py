"""Series of single heads and of query buckets, magnitudes, and claims on what the dynamics table found."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from made_up import SPEC, attention_intervals, norm_drift, run_keys

from isotrace.dynamics.claims import claims_table
from isotrace.dynamics.declared import families
from isotrace.dynamics.measures import magnitude
from isotrace.dynamics.table import dynamics_table
from isotrace.errors import ConfigError
from isotrace.yamlfile import read_mapping

COMMITTED = read_mapping(Path(__file__).parents[2] / "config" / "claims.yaml", "families and claims")


def only(*names):
    """The committed file with these families and claims."""
    claims = [claim for claim in COMMITTED["claims"] if claim["claim"] in names]
    return {"families": {k: v for k, v in COMMITTED["families"].items() if k in names}, "claims": claims}


def claim_of(name, tables, *more):
    declared = only(name, *more)
    rows = claims_table(tables | {"dynamics": dynamics_table(tables, declared, SPEC)}, declared, SPEC)
    return rows[rows["model"] == "decoder"].iloc[0]


def test_every_head_is_a_series_of_its_own():
    entropy = attention_intervals(lambda x, layer, head: 0.5 + (0.3 if head else -0.3) * x)
    rows = dynamics_table({"attention_intervals": entropy}, only("sharpness"), SPEC)
    taus = rows[(rows["statistic"] == "kendall_tau") & (rows["unit"] == "sequence")].set_index("site")
    assert set(taus.index) == {f"block.{i}.head.{j}" for i in (0, 1) for j in (0, 1)}
    assert taus.loc[["block.0.head.0", "block.1.head.0"], "effect"].tolist() == [1, 1]
    assert taus.loc[["block.0.head.1", "block.1.head.1"], "effect"].tolist() == [-1, -1]
    assert (taus["lo"] <= taus["effect"]).all()
    assert taus["p_value"].isna().all()


def test_query_buckets_are_ordered_within_a_run():
    entropy = attention_intervals(lambda x, layer, head: 0.5 - 0.1 * x)
    rows = dynamics_table({"attention_intervals": entropy}, only("sharpness_by_query_bucket"), SPEC)
    order = rows[(rows["statistic"] == "bucket_order") & (rows["unit"] == "sequence")]
    assert set(order["site"]) == {"block.0", "block.1"}
    np.testing.assert_allclose(order["effect"], 1)  # the rarest queries have the lowest entropy
    assert set(rows.loc[rows["test"] == "trend", "bucket"]) == {"b0", "b1", "b2", "all"}


def test_a_head_is_set_against_the_drift_of_its_block():
    entropy = attention_intervals(lambda x, layer, head: 0.5 + (0.3 if head else -0.3) * x)
    drift = norm_drift(lambda x, layer: 0.1 + 0.5 * x * (1 if layer else -0.15))
    tables = {"attention_intervals": entropy, "geometry": drift}
    rows = dynamics_table(tables, only("sharpness_against_norm_drift"), SPEC)
    inside = rows[(rows["unit"] == "sequence") & (rows["bucket"] == "all")].set_index("site")["effect"]
    expected = {"block.0.head.0": -1, "block.0.head.1": 1, "block.1.head.0": 1, "block.1.head.1": -1}
    assert inside.to_dict() == pytest.approx(expected)


@pytest.mark.parametrize(("sign", "verdict"), [(-1, "contradicted"), (1, "supported")])
def test_drift_and_sharpness_separate_or_rise_together(sign, verdict):
    entropy = attention_intervals(lambda x, layer, head: 0.5 + sign * 0.3 * x, error=1e-4)
    drift = norm_drift(lambda x, layer: 0.1 + 0.5 * x, error=1e-4)
    row = claim_of(
        "drift_sharpness_separate",
        {"attention_intervals": entropy, "geometry": drift},
        "sharpness_against_norm_drift",
    )
    assert (row["estimate"], row["verdict"]) == (pytest.approx(-sign), verdict)


def test_the_dot_grows_in_magnitude_whatever_its_sign():
    dot = attention_intervals(lambda x, layer, head: (1 if head else -1) * (0.1 + x), column="mean_dot_qk")
    row = claim_of("dot_grows", {"attention_intervals": dot})
    assert (row["estimate"], row["verdict"]) == (pytest.approx(1), "supported")
    assert row["hi"] - row["lo"] == pytest.approx(0.04)
    flat = attention_intervals(lambda x, layer, head: 0.1 + 0.01 * x, column="mean_dot_qk")
    assert claim_of("dot_grows", {"attention_intervals": flat})["verdict"] == "undecided"


def test_frequent_keys_are_sinks_when_all_late_ratios_are():
    def mass(ratio):
        return pd.DataFrame([
            run_keys("decoder", step)
            | {"layer": 0, "head": h, "query_bucket": "all", "key_bucket": bucket, "mass": 0.1, "share": 0.1}
            | {"log_ratio": ratio * (bucket == "b0"), "lo": ratio - 0.1, "hi": ratio + 0.1, "reason": ""}
            for step in (0, 80, 100)
            for h in (0, 1)
            for bucket in ("b0", "b1", "none")
        ])  # fmt: skip

    verdicts = [claim_of("frequent_keys_are_sinks", {"attention_mass": mass(r)})["verdict"] for r in (0.5, -0.5, 0.05)]
    assert verdicts == ["supported", "contradicted", "undecided"]


def test_the_bounds_of_a_magnitude():
    frame = pd.DataFrame({"value": [2.0, -2.0, -0.1, np.nan], "lo": [1, -3, -0.4, np.nan], "hi": [3, -1, 0.2, np.nan]})
    found = magnitude(frame).to_numpy()
    np.testing.assert_allclose(found[:3], [[2, 1, 3], [2, 1, 3], [0.1, 0, 0.4]])
    assert np.isnan(found[3]).all()


def test_what_cannot_be_told_apart_is_refused():
    family = {"measure": "geometry.value", "where": {"quantity": "activation", "metric": "loss"}, "tests": ["trend"]}
    with pytest.raises(ConfigError, match=r"families.x.apart: 'head' is not one of"):
        families({"families": {"x": family | {"apart": "head"}}})
