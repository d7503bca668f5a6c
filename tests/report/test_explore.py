"""What can be picked in the page: known points, gaps, a bound on their number, and a specification that fits Vega."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from made_report import MODELS, energy

from isotrace.report.explore import ALL, chart, interactive, points

READ = {"rank": 4, "method": "pca", "null_space": "complement"}


def lines_of(spec):
    """The records of the chart's data."""
    return next(rows for rows in spec["datasets"].values() if len(rows) > 1)


def test_points_are_those_of_the_table():
    found = points(energy(), **READ)
    assert len(found) == 2 * 2 * 2 * 4 * 2 * 6  # models, bases, ranks, sites, buckets, steps
    one = found[(found["model"] == "encoder") & (found["site"] == "block.1") & (found["bucket"] == "b1")]
    one = one[(one["basis"] == "fixed") & (one["rank"] == 8)]
    assert one["step"].tolist() == [0, 10, 20, 40, 80, 100]
    np.testing.assert_allclose(one["ratio"], 180 * (1.0 + one["step"]))
    assert (one["lo"] < one["ratio"]).all()
    assert (one["hi"] > one["ratio"]).all()
    assert one["x"].iloc[0] < 1 == one["x"].iloc[1]


@pytest.mark.parametrize(("most", "left"), [(384, 384), (383, 192), (100, 96), (10, 64)])
def test_beyond_a_bound_ranks_go_first_and_then_checkpoints_between_the_ends(most, left):
    found = points(energy(), **READ, most=most)
    assert len(found) == left
    assert set(found["step"]) >= {0, 100}
    assert 4 in set(found["rank"])


def test_the_data_is_a_record_a_line_with_gaps_where_a_ratio_is_missing():
    table = energy()
    table.loc[(table["step"] == 40) & (table["bucket"] == "b0"), ["ratio", "energy_lo"]] = np.nan
    spec = chart(points(table, **READ), rank=4)
    lines = lines_of(spec)
    assert len(lines) == 2 * 2 * 2 * 4 * 2
    gap = next(line for line in lines if line["bucket"] == "b0")
    assert gap["ratio"][3] is None
    assert None not in next(line for line in lines if line["bucket"] == "b1")["ratio"]
    json.dumps(spec, allow_nan=False)


def test_menus_offer_what_was_measured_and_begin_where_the_study_reads():
    spec = chart(points(energy(), **READ), rank=4)
    menus = {p["name"]: (p["value"], p["bind"]["options"]) for p in spec["params"]}
    assert menus == {
        "model": ("decoder", list(MODELS)),
        "site": ("block.1", ["embed", "block.0", "block.1", "final_norm"]),
        "bucket": (ALL, [ALL, "b0", "b1"]),
        "rank": (4, [4, 8]),
    }
    whole = energy()
    whole = whole[whole["bucket"] == "b0"].assign(bucket="all")
    one = {p["name"]: p for p in chart(points(whole, **READ), rank=4)["params"]}
    assert one["bucket"]["bind"]["options"] == ["all"]


def test_runs_without_a_seed_and_broken_checkpoints_are_no_trouble():
    lost = pd.DataFrame([{"model": "decoder", "step": 60, "site": "", "reason": "broken"}])
    table = pd.concat([energy().assign(seed=pd.NA), lost], ignore_index=True)
    assert 60 not in set(points(table, **READ)["step"])


def test_the_same_bytes_and_nothing_that_ends_a_script():
    table = energy()
    table.loc[table["bucket"] == "b1", "bucket"] = "</script><b>"
    text = interactive(chart(points(table, **READ), rank=4), "said")
    assert text == interactive(chart(points(table, **READ), rank=4), "said")
    assert text.count("</script>") == text.count("<script") == 3
    assert "</script><b>" in json.loads(re.search(r"id=spec>(.*?)</script>", text)[1])["params"][2]["bind"]["options"]
