"""Causes, what to look at, and relations to loss and scores: planted ones are found, absent ones are not."""

import numpy as np
import pandas as pd
import pytest

import card_tables as made
from isotrace.card.made import card


def answers(one):
    return {c.name: c.answer for c in one.causes}


def collapsed(step, site, bucket):
    return 0.9 if step >= 40 else 0.1


COLLAPSED = made.geometry(mean_cosine=collapsed)


def test_a_planted_mean_direction_is_the_likely_cause_where_it_is_asked_for():
    one = card(made.tables(geometry=COLLAPSED), "mine", None, made.how())
    assert (one.place.site, one.place.step) == ("final_norm", 100)
    assert answers(one) == {
        "a common mean direction": "likely", "token frequency": "unlikely", "outlier dimensions": "unlikely",
        "drift of queries and keys": "unlikely",
    }  # fmt: skip
    assert "mean cosine 0.90, 0.01 once the mean is subtracted: centring takes 99 %" in one.causes[0].evidence
    assert [what for what, _ in one.next()] == ["Mean cosine after the final norm", "a common mean direction"]


@pytest.mark.parametrize(
    ("cause", "changes"),
    [
        ("token frequency", {"frequency": made.frequency(-0.9)}),
        (
            "token frequency",
            {"geometry": made.geometry(mean_cosine=lambda t, s, b: 0.95 if b == "b0" else 0.6)},
        ),
        ("outlier dimensions", {"controls": made.controls(ratio=20.0, dropped=4.0)}),
        ("outlier dimensions", {"geometry": made.geometry(mean_cosine=collapsed, max_over_median_norm=9.0)}),
        ("drift of queries and keys", {"attention_intervals": made.attention_intervals(drift=0.85)}),
    ],
)
def test_each_planted_cause_is_likely(cause, changes):
    one = card(made.tables(**({"geometry": COLLAPSED} | changes)), "mine", None, made.how())
    assert answers(one)[cause] == "likely"


def test_a_mean_that_explains_nothing_is_unlikely():
    geometry = made.geometry(mean_cosine=collapsed, mean_cosine_centred=0.85)
    one = card(made.tables(geometry=geometry), "mine", None, made.how())
    assert answers(one)["a common mean direction"] == "unlikely"


def test_causes_without_their_tables_are_unknown_and_say_what_they_need():
    tables = {"isotropy": made.isotropy(0.005)}
    one = card(tables, "mine", None, made.how())
    assert set(answers(one).values()) == {"unknown"}
    assert "geometry.metrics" in next(c.evidence for c in one.causes if c.name == "a common mean direction")
    assert one.verdict == "alarm"
    nothing = card({}, "mine", None, made.how())
    assert (nothing.verdict, nothing.place, nothing.causes, nothing.relations) == ("unknown", None, [], [])


def falling_loss(step, site, bucket):
    return 5.0 - step / 50


def test_a_measure_that_falls_with_loss_has_correlation_one_with_an_interval():
    geometry = made.geometry(mean_cosine=lambda step, s, b: 0.9 - step / 200, loss=falling_loss)
    one = card(made.tables(geometry=geometry), "mine", None, made.how())
    rows = {r.title: r for r in one.relations}
    row = rows["Mean cosine after the final norm"]
    assert (row.against, row.rho, row.n) == ("held-out loss", 1.0, 6)
    assert row.lo <= row.rho <= row.hi
    assert row.lo > 0.5
    flat = rows["Norm drift"]
    assert np.isnan(flat.rho)
    assert "constant" in flat.note
    none = rows["Sharpness of attention"]
    assert np.isnan(none.lo)


def test_scores_are_correlated_and_missing_steps_are_named():
    geometry = made.geometry(mean_cosine=lambda step, s, b: step / 200, loss=falling_loss)
    scores = pd.DataFrame({"step": [10, 20, 40, 80, 90], "accuracy": [0.1, 0.2, 0.3, np.nan, 0.5]})
    scores["f1"] = [0.5, 0.4, 0.3, 0.2, 0.1]
    one = card(made.tables(geometry=geometry), "mine", scores, made.how())
    rows = {r.against: r for r in one.relations if r.title.startswith("Mean cosine")}
    assert (rows["f1"].rho, rows["f1"].n) == (-1.0, 4)
    assert rows["f1"].lo == -1.0
    assert np.isnan(rows["accuracy"].rho)
    assert rows["accuracy"].n == 3
    assert one.notes == [
        "accuracy: no score at step 0, 80, 100",
        "f1: no score at step 0, 100",
        "scores at steps of no checkpoint, left out: 90",
    ]


def test_without_loss_a_note_says_so():
    geometry = made.geometry()
    tables = made.tables(geometry=geometry[geometry["metric"] != "loss"])
    assert card(tables, "mine", None, made.how()).notes[0].startswith("no held-out loss")


def test_several_models_at_one_step_have_no_course():
    geometry = made.geometry()
    twins = geometry.assign(checkpoint=geometry["checkpoint"] + "-b")
    one = card({"geometry": pd.concat([geometry, twins], ignore_index=True)}, "mine", None, made.how())
    assert {r.note for r in one.relations} == {"several models at one step: no course of training"}
