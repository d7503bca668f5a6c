"""Mean cosine by site: the mean over buckets, and no interval where a bucket has none."""

import numpy as np
import synthetic

from isotrace.figures.cosine_over_training import data


def test_value_and_limits_are_means_over_buckets():
    table = synthetic.geometry()
    drawn = data({"geometry": table}, {"metrics": ["mean_cosine"]})
    want = table.query("model == 'decoder' and site == 'final_norm' and step == 16 and metric == 'mean_cosine'")
    got = drawn.query("model == 'decoder' and site == 'final_norm' and step == 16").iloc[0]
    np.testing.assert_allclose(got[["value", "lo", "hi"]].astype(float), want[["value", "lo", "hi"]].mean())
    assert set(drawn["metric"]) == {"mean_cosine"}


def test_half_an_interval_is_none():
    table = synthetic.geometry(models=("decoder",))
    table.loc[table["bucket"] == "b1", ["lo", "hi"]] = np.nan
    drawn = data({"geometry": table}, {})
    assert drawn["lo"].isna().all()
    assert drawn["value"].notna().all()
