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


def test_other_draws_of_the_weights_are_untrained_lines_of_their_own():
    table = synthetic.geometry(models=("decoder",))
    start = table[table["step"] == 0].drop(columns=["checkpoint", "step", "tokens_seen", "progress", "phase"])
    draws = pd.concat([start.assign(draw=n, value=start["value"] + n) for n in (1, 2)], ignore_index=True)
    drawn = data({"geometry": table, "untrained": draws}, {})
    assert sorted(set(drawn.query("step == 0")["checkpoint"])) == ["step0", "untrained-1", "untrained-2"]
    at = drawn.query("site == 'block.2' and step == 0").set_index("checkpoint")["value"]
    np.testing.assert_allclose(at["untrained-2"] - at["step0"], 2)
    assert data({"geometry": table, "untrained": draws.iloc[:0]}, {}).equals(data({"geometry": table}, {}))
