"""Lines by depth: means over buckets, every untrained checkpoint, a few of the trained ones."""

import numpy as np
import pandas as pd
import synthetic

from isotrace.figures.cosine_by_depth import data


def test_a_point_is_the_mean_over_buckets():
    table = synthetic.geometry()
    drawn = data({"geometry": table}, {})
    want = table.query("model == 'encoder' and site == 'block.2' and step == 800 and metric == 'mean_cosine'")
    got = drawn.query("model == 'encoder' and site == 'block.2' and step == 800").iloc[0]
    np.testing.assert_allclose(got[["value", "lo", "hi"]].astype(float), want[["value", "lo", "hi"]].mean())


def test_all_untrained_models_stay_and_trained_ones_are_thinned_out():
    table = synthetic.geometry(models=("decoder",))
    drawn = data({"geometry": table}, {})
    assert sorted(set(drawn["step"])) == [0, 1, 4, 8, 32, 128, 384, 512, 800]
    several = table[table["step"] == 0].assign(checkpoint="step0-seed1")
    drawn = data({"geometry": pd.concat([table, several])}, {}).query("step == 0")
    assert sorted(set(drawn["checkpoint"])) == ["step0", "step0-seed1"]
