"""What figure ``alternatives`` draws: each rival by its own reason, and a bucket that lacks one moves no line."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figures.alternatives import NAMES, data

MADE = {"models": ("decoder",), "steps": (0, 4, 800)}


@pytest.fixture(scope="module")
def controls():
    return synthetic.controls(**MADE)


def drawn_of(controls, energy=None):
    return data({"controls": controls, "energy": synthetic.energy(**MADE) if energy is None else energy}, {})


def at(drawn, name, step, site="block.0"):
    return drawn[(drawn["alternative"] == name) & (drawn["step"] == step) & (drawn["site"] == site)].iloc[0]


def test_every_alternative_is_the_geometric_mean_over_buckets(controls):
    drawn = drawn_of(controls)
    assert set(drawn["alternative"]) == set(NAMES)
    assert set(drawn["site"]) == {"block.0", "block.3"}
    assert (drawn["buckets"] == 4).all()
    here = controls[(controls["step"] == 4) & (controls["site"] == "block.0")]
    plain = np.exp(np.log(here["ratio"]).mean())
    assert at(drawn, "ratio", 4)["value"] == pytest.approx(plain)
    for name, factor in synthetic.RIVALS.items():
        assert at(drawn, f"ratio_{name}", 4)["value"] == pytest.approx(factor * plain)


def test_a_bucket_that_lacks_a_rival_moves_no_line(controls):
    lacking = controls.copy()
    gone = lacking["bucket"] == "b0"
    lacking.loc[gone, "ratio_loss_balanced"] = np.nan
    lacking.loc[gone, "reason"] = "ratio_loss_balanced: out of reach"
    before, after = (drawn_of(table) for table in (controls, lacking))
    assert after["value"].to_numpy() == pytest.approx(before["value"].to_numpy())
    counted = after.groupby("alternative")["buckets"].max()
    assert counted["ratio_loss_balanced"] == 3
    assert counted.drop("ratio_loss_balanced").eq(4).all()


def test_a_rival_without_any_value_says_its_own_reason(controls):
    gone = controls.assign(ratio_moving=np.nan, reason="ratio_moving: none was fitted; optimism: few rows")
    drawn = drawn_of(gone)
    assert set(drawn.loc[drawn["alternative"] == "ratio_moving", "reason"]) == {"none was fitted"}
    assert set(drawn.loc[drawn["alternative"] != "ratio_moving", "reason"]) == {""}


def test_other_bases_methods_and_quantities_are_not_mixed_in(controls):
    others = [
        controls.assign(ratio=1e6, **change)
        for change in ({"basis": "leave_one_out"}, {"method": "random"}, {"quantity": "activation"})
    ]
    both = pd.concat([controls, *others], ignore_index=True)
    pd.testing.assert_frame_equal(drawn_of(both), drawn_of(controls))


def test_the_plain_line_carries_the_interval_over_sequences_of_table_energy(controls):
    energy = synthetic.energy(**MADE)
    here = energy[(energy["step"] == 4) & (energy["site"] == "block.0") & (energy["basis"] == "fixed")]
    odds = {end: here[f"energy_{end}"] / (1 - here[f"energy_{end}"]) * 120 / 8 for end in ("lo", "hi")}
    plain = at(drawn_of(controls, energy), "ratio", 4)
    assert plain["lo"] == pytest.approx(np.exp(np.log(odds["lo"]).mean()))
    assert plain["hi"] == pytest.approx(np.exp(np.log(odds["hi"]).mean()))
    assert plain["interval"] == "within the run"


def test_a_rival_spans_its_lowest_and_highest_bucket(controls):
    uneven = controls.copy()
    uneven.loc[uneven["bucket"] == "b3", "ratio_moving"] *= 4
    rival = at(drawn_of(uneven), "ratio_moving", 4)
    plain = at(drawn_of(uneven), "ratio", 4)["value"]
    factor = synthetic.RIVALS["moving"]
    assert (rival["lo"], rival["hi"]) == (pytest.approx(factor * plain), pytest.approx(4 * factor * plain))
    assert rival["interval"] == "range over buckets"


def test_a_single_bucket_has_no_spread(controls):
    one = controls[controls["bucket"] == "b0"]
    assert drawn_of(one).query("alternative == 'ratio_moving'")[["lo", "hi"]].isna().all(axis=None)
