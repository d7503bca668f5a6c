"""Untrained models drawn beside a series: where their weights are those of its step 0, so is every number."""

import json

import numpy as np
import pandas as pd
import pytest

from isotrace.capture.untrained import ISOTROPY, METRICS, untrained_table
from isotrace.params import Params
from isotrace.study import read

PLACE = ["site", "bucket", "metric"]


@pytest.mark.parametrize("name", ["decoder", "encoder"])
def test_a_draw_of_the_runs_own_seed_is_its_step_zero(smoke, name, monkeypatch):
    monkeypatch.chdir(smoke.folder)
    spec = Params(read(smoke.config)).untrained(name) | {"seeds": [0, 1]}
    like, sample = smoke.at(f"checkpoints/{name}/step0.json"), smoke.at(f"sample/{name}.json")
    found, sites = untrained_table(like, sample, spec)
    assert sites == ["embed", "block.0", "block.1", "final_norm"]
    assert set(found["metric"]) == {*METRICS, ISOTROPY}
    own = smoke.table("geometry").query("model == @name and step == 0 and quantity == 'activation'")
    at_zero = found[found["draw"] == 0].merge(own, on=PLACE, suffixes=("", "_own"))
    assert set(at_zero["metric"]) == {"mean_cosine", "mean_cosine_centred", "norm_drift"}
    for column in ("value", "lo", "hi"):
        np.testing.assert_allclose(at_zero[column], at_zero[f"{column}_own"], rtol=1e-5, atol=1e-7)
    isotropy = smoke.table("isotropy").query(
        "model == @name and step == 0 and quantity == 'activation' and estimator == 'corrected'"
        " and convention == 'ambient' and outliers == 'kept' and basis == 'fixed' and method == 'pca'"
    )
    whole = isotropy.drop_duplicates(["site", "bucket"]).set_index(["site", "bucket"])["score"]
    mine = found.query("draw == 0 and metric == @ISOTROPY").set_index(["site", "bucket"])["value"]
    np.testing.assert_allclose(mine.loc[whole.index], whole, rtol=1e-4)
    other = found[found["draw"] == 1].merge(own, on=PLACE, suffixes=("", "_own"))
    assert (other["value"] != other["value_own"]).all()


def test_the_table_holds_every_draw_and_the_figure_draws_it(smoke):
    table = smoke.table("untrained")
    assert set(zip(table["model"], table["draw"], strict=True)) == {("decoder", 1), ("encoder", 1)}
    assert (table["seed"] == 0).all()
    drawn = pd.read_csv(smoke.at("figures/cosine_by_depth.csv"))
    assert {"step0", "untrained-1"} <= set(drawn["checkpoint"])


def test_of_few_rows_there_is_a_reason(smoke, monkeypatch):
    monkeypatch.chdir(smoke.folder)
    spec = Params(read(smoke.config)).untrained("decoder") | {"min_rows": 10_000}
    audit = json.loads(smoke.at("checkpoints/decoder/step0.json").read_text())
    config = smoke.folder / audit["source"]["path"] / "config.json"
    found, _ = untrained_table(config, smoke.at("sample/decoder.json"), spec)
    assert found["value"].isna().all()
    assert found["reason"].str.contains("min_rows|rows").all()
