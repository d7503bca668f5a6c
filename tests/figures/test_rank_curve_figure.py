"""What figure ``rank_curve`` draws: the curve of the table at the ends of the model, at a few checkpoints."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figures.rank_curve import data


@pytest.fixture(scope="module")
def curves():
    return synthetic.rank_curve(models=("decoder",))


def test_the_curve_is_the_mean_over_buckets_at_five_checkpoints(curves):
    plain = data({"rank_curve": curves}, {})
    assert plain["value"].between(plain["lo"], plain["hi"]).all()
    raised = curves.assign(value=curves["value"] + 0.01 * (curves["bucket"] == "b0"))
    drawn = data({"rank_curve": raised}, {})
    assert set(drawn["site"]) == {"block.0", "block.3"}
    assert drawn["step"].nunique() == 5
    assert {0, 800} <= set(drawn["step"])
    row = drawn[(drawn["step"] == 800) & (drawn["site"] == "block.3") & (drawn["rank"] == 3)].iloc[0]
    same = (curves["step"] == 800) & (curves["site"] == "block.3") & (curves["rank"] == 3)
    assert row["value"] == pytest.approx(raised[same]["value"].mean())
    assert row["isotropic"] == 3 / synthetic.WIDTH


def test_summaries_other_bases_and_copies_of_checkpoints_are_left_out(curves):
    others = [
        curves.assign(value=9.0, **change)
        for change in ({"statistic": "area"}, {"basis": "moving"}, {"method": "random"}, {"quantity": "activation"})
    ]
    copied = curves[curves["step"] == 4].assign(step=5, checkpoint="step5", status="duplicate", value=9.0)
    both = pd.concat([curves.assign(status="ok"), *(o.assign(status="ok") for o in others), copied])
    pd.testing.assert_frame_equal(data({"rank_curve": both}, {}), data({"rank_curve": curves}, {}))


def test_checkpoints_without_a_curve_are_not_chosen(curves):
    gone = curves["step"] == 800
    lost = curves.assign(value=curves["value"].mask(gone), reason=np.where(gone, "few rows", ""))
    assert max(data({"rank_curve": lost}, {})["step"]) == 640
