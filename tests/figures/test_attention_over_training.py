"""Attention figure: means and ranges over heads, sharpness as one minus entropy, buckets averaged where split."""

import numpy as np
import pandas as pd
import synthetic

from isotrace.figures.attention_over_training import data


def test_values_are_means_and_ranges_over_heads():
    table = synthetic.attention(models=("decoder",), steps=(16,), layers=2)
    drawn = data({"attention": table}, {})
    heads = 1 - table.query("layer == 1")["entropy"]
    row = drawn.query("layer == 1 and metric == 'sharpness'").iloc[0]
    np.testing.assert_allclose(row[["value", "lo", "hi"]].astype(float), [heads.mean(), heads.min(), heads.max()])
    assert row["interval"] == "range over heads"


def test_unsplit_rows_win_and_split_rows_are_averaged():
    table = synthetic.attention(models=("decoder",), steps=(16,), layers=1, heads=1)
    split = [table.assign(query_bucket=b, drift_q=v, drift_k=v) for b, v in (("b0", 0.2), ("b1", 0.4))]
    both = data({"attention": pd.concat([table, *split])}, {}).query("metric == 'drift_q'")
    np.testing.assert_allclose(both["value"], table["drift_q"])
    alone = data({"attention": pd.concat(split)}, {}).query("metric == 'drift_q'")
    np.testing.assert_allclose(alone["value"], 0.3)
