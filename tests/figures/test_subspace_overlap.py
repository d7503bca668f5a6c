"""Overlaps over training: which rows are drawn, and the band of random subspaces."""

import numpy as np
import pandas as pd
import synthetic

from isotrace.figures.subspace_overlap import data, draw


def test_points_are_the_tables_overlaps_at_the_rank_asked_for():
    table = synthetic.subspaces()
    other = table.assign(rank=2, overlap=0.1)
    drawn = data({"subspaces": pd.concat([table, other], ignore_index=True)}, {"rank": synthetic.RANK})
    assert len(drawn) == len(table)
    merged = drawn.merge(table, on=["model", "site", "comparison", "step"], suffixes=("", "_known"))
    assert np.array_equal(merged["overlap"], merged["overlap_known"])
    mean, two = synthetic.RANK / synthetic.WIDTH, 0.02
    assert np.allclose(drawn["null_lo"], mean - two)
    assert np.allclose(drawn["null_hi"], mean + two)


def test_comparisons_of_no_checkpoint_are_not_drawn():
    table = synthetic.subspaces()
    nowhere = table.head(1).assign(checkpoint="", step=pd.NA, comparison="halves", overlap=0.123)
    drawn = data({"subspaces": pd.concat([table, nowhere], ignore_index=True)}, {})
    assert not (drawn["overlap"] == 0.123).any()


def test_a_broken_checkpoint_is_marked_and_seeds_have_a_range():
    table = synthetic.subspaces(("m",), (0, 4, 800))
    table = pd.concat([table, table.assign(seed=1, overlap=table["overlap"] - 0.2)], ignore_index=True)
    lost = dict.fromkeys(("site", "comparison", "method", "other"), "")
    broken = table.head(1).assign(**lost, step=16, checkpoint="step16", overlap=np.nan, reason="cut", status="broken")
    fig, drawn = draw({"subspaces": pd.concat([table.assign(status="ok"), broken], ignore_index=True)}, {})
    assert set(drawn.query("step == 16")["reason"]) == {"cut"}
    kept = drawn.query("step != 16")
    assert np.allclose(kept["hi"] - kept["lo"], 0.2)
    assert any("broken" in t.get_text() for legend in fig.legends for t in legend.get_texts())
