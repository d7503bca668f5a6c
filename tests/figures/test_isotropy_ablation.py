"""The ablation figure draws whole, without T, and the null draws at the last block; filled means above every draw."""

import numpy as np
import synthetic

from isotrace.figures.isotropy_ablation import data


def test_scores_are_those_of_the_last_block_and_estimator():
    table = synthetic.isotropy().query("quantity == 'gradient'")
    drawn = data({"isotropy": table}, {"estimator": "plugin"})
    wanted = table[table["estimator"] == "plugin"].set_index(["model", "bucket", "step"]).sort_index()
    got = drawn.set_index(["model", "bucket", "step"]).sort_index()
    for column in ("score", "score_without_tangent", "score_without_normal_lo", "score_without_normal_hi"):
        np.testing.assert_array_equal(got[column], wanted[column])
    np.testing.assert_array_equal(got["lo"], wanted["score_lo"])
    assert set(drawn["site"]) == {"block.3"}


def test_above_every_draw_is_the_smallest_p_that_the_draws_allow():
    table = synthetic.isotropy(models=("decoder",), buckets=("b0",), steps=(0, 1)).assign(n_nulls=99)
    table["p_value"] = np.where(table["step"] == 0, 0.01, 0.02)
    assert list(data({"isotropy": table}, {})["above_every_draw"]) == [True, False]


def test_at_most_as_many_buckets_as_fit_the_ends_among_them():
    table = synthetic.isotropy(buckets=tuple(f"b{i}" for i in range(12)), steps=(0,))
    assert sorted(set(data({"isotropy": table}, {"venue": "icml-column"})["bucket"])) == ["b0", "b11"]
    assert set(data({"isotropy": table}, {"buckets": ["b5"]})["bucket"]) == {"b5"}
