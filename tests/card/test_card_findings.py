"""Findings of a card: numbers, verdicts at thresholds, since when and where, and reasons where nothing is known."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import card_tables as made
import configs
from isotrace.card.findings import findings, judged, verdict_of
from isotrace.card.measures import MEASURES
from isotrace.card.readings import COLUMNS, Read, over_buckets
from isotrace.errors import ConfigError
from isotrace.settings.card import Thresholds
from isotrace.study import validated

NAMES = [m.name for m in MEASURES]
HEALTHY = {
    "mean_cosine": 0.2, "isotropy": 0.3, "norm_drift": 0.3, "outlier_norm": 1.5, "late_energy": 0.5,
    "attention_drift": 0.3, "sharpness": 0.1, "frequency_bias": 0.4,
}  # fmt: skip


def found(tables, **how):
    return {f.measure.name: f for f in findings(tables, "mine", made.how(**how))}


def test_a_healthy_model_is_ok_with_each_number_as_it_stands_in_its_table():
    rows = found(made.tables())
    values = {name: round(f.value, 6) for name, f in rows.items()}
    assert values == HEALTHY
    assert {f.verdict for f in rows.values()} == {"ok"}
    assert {f.step for f in rows.values()} == {100}
    assert (rows["mean_cosine"].lo, rows["mean_cosine"].hi) == pytest.approx((0.19, 0.21))
    assert (rows["frequency_bias"].lo, rows["frequency_bias"].hi) == pytest.approx((0.35, 0.45))
    assert (rows["mean_cosine"].site, rows["frequency_bias"].site) == ("final_norm", "embed")
    assert verdict_of(list(rows.values())) == "ok"


@pytest.mark.parametrize("name", NAMES)
def test_a_threshold_flips_its_own_verdict_and_no_other(name):
    milder = 0.01 if name != "isotropy" else -0.01
    value, tables = HEALTHY[name], made.tables()
    for watch, alarm, verdict in (
        (value + milder, value + milder, "ok"),
        (value - milder, value + milder, "watch"),
        (value - milder, value - milder, "alarm"),
    ):
        rows = found(tables, thresholds=made.limits(**{name: (watch, alarm)}))
        assert {n: f.verdict for n, f in rows.items()} == dict.fromkeys(NAMES, "ok") | {name: verdict}
        assert verdict_of(list(rows.values())) == verdict


def test_since_when_and_from_which_depth():
    def cosine(step, site, bucket):
        return 0.9 if step >= 40 and site in ("block.1", "final_norm") else 0.1

    row = found(made.tables(geometry=made.geometry(mean_cosine=cosine)))["mean_cosine"]
    assert row.verdict == "alarm"
    assert (row.onset.first, row.onset.from_site, row.onset.worst_site) == (40, "block.1", "final_norm")


def test_a_passage_that_is_over_is_told_and_is_no_alarm():
    drift = {10: 0.95, 20: 0.99, 40: 0.2, 80: 0.75}
    row = found(made.tables(geometry=made.geometry(norm_drift=lambda step, s, b: drift.get(step, 0.1))))["norm_drift"]
    assert (row.verdict, row.onset) == ("ok", None)
    assert [(s.first, s.last, s.worst, s.worst_step) for s in row.spans] == [(10, 20, 0.99, 20), (80, 80, 0.75, 80)]


def test_the_worst_site_counts_but_not_the_embedding():
    drift = {"embed": 0.99, "block.0": 0.1, "block.1": 0.8, "final_norm": 0.2}
    row = found(made.tables(geometry=made.geometry(norm_drift=lambda step, site, b: drift[site])))["norm_drift"]
    assert (row.site, row.verdict, round(row.value, 6)) == ("block.1", "watch", 0.8)


def test_without_a_table_or_a_metric_the_reason_says_so():
    tables = made.tables()
    del tables["attention_intervals"]
    tables["geometry"] = tables["geometry"][tables["geometry"]["metric"] != "max_over_median_norm"]
    rows = found(tables)
    assert (rows["attention_drift"].verdict, rows["sharpness"].verdict) == ("unknown", "unknown")
    assert rows["attention_drift"].reason == "not measured: no rows of attention"
    assert "geometry.metrics does not name max_over_median_norm" in rows["outlier_norm"].reason
    assert verdict_of(list(rows.values())) == "ok"
    assert {f.verdict for f in found({}).values()} == {"unknown"}


def test_a_judged_site_without_any_number_is_unknown_though_others_have_one():
    geometry = made.geometry(mean_cosine=lambda step, site, b: float("nan") if site == "final_norm" else 0.9)
    geometry.loc[geometry["value"].isna(), "reason"] = "12 rows, fewer than 32"
    row = found(made.tables(geometry=geometry))["mean_cosine"]
    assert (row.verdict, row.reason) == ("unknown", "12 rows, fewer than 32")


def test_a_broken_newest_checkpoint_is_unknown_with_its_reason_and_not_ok():
    rows = found(made.without_newest(made.tables(), "non-finite weights"))
    for name, row in rows.items():
        assert row.verdict == "unknown", name
        assert "step100: non-finite weights" in row.reason
        assert row.step == 80


def test_a_bucket_with_gaps_does_not_make_the_mean_jump():
    def cosine(step, site, bucket):
        return 0.1 if bucket == "b0" else float("nan") if step == 40 else 0.5

    frame = made.geometry(mean_cosine=cosine)
    means = over_buckets(frame[frame["metric"] == "mean_cosine"])
    assert set(means["value"]) == {0.1}


def test_late_energy_is_over_the_highest_early_ratio_of_a_trained_checkpoint():
    ratio = {0: 50.0, 10: 4.0, 20: 8.0, 40: 8.0, 80: 24.0, 100: 24.0}
    row = found(made.tables(energy=made.energy(lambda step, s, b: ratio[step])))["late_energy"]
    assert row.value == pytest.approx(3.0)
    assert (row.verdict, row.onset.first) == ("alarm", 80)
    assert row.lo < 3.0 < row.hi


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1), st.floats(0, 1))
def test_a_stricter_threshold_never_gives_a_milder_verdict(values, one, other):
    frame = pd.DataFrame([["block.0", 0, f"step{i}", i, v, v, v, ""] for i, v in enumerate(values)], columns=COLUMNS)
    order = ("ok", "watch", "alarm")
    for measure in (m for m in MEASURES if m.name in ("isotropy", "norm_drift")):
        strict, mild = (max, min) if measure.falls else (min, max)
        verdicts = [
            judged(measure, Read(frame, ["block.0"]), watch=limit, alarm=limit).verdict
            for limit in (mild(one, other), strict(one, other))
        ]
        assert order.index(verdicts[0]) <= order.index(verdicts[1])


def test_thresholds_the_wrong_way_round_are_refused():
    with pytest.raises(ValueError, match=r"alarm 0\.05 lies above watch 0\.02"):
        Thresholds.model_validate({"isotropy": {"watch": 0.02, "alarm": 0.05}})
    raw = configs.smoke({"card": {"thresholds": {"mean_cosine": {"watch": 0.9, "alarm": 0.5}}}})
    with pytest.raises(ConfigError, match=r"^card\.thresholds: mean_cosine: alarm 0\.5 lies below watch 0\.9"):
        validated(raw)


def test_attention_is_the_mean_over_heads_with_the_mean_of_their_limits():
    rows = found(made.tables())
    drift, sharp = rows["attention_drift"], rows["sharpness"]
    assert (drift.value, drift.lo, drift.hi) == pytest.approx((0.3, 0.28, 0.34))
    assert (sharp.value, sharp.lo, sharp.hi) == pytest.approx((0.1, 0.06, 0.12))
