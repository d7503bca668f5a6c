"""The dynamics table: which unit carries what, families, notes."""

import numpy as np
import pytest
from made_up import SPEC, attention, energy

from isotrace.dynamics.table import dynamics_table

TESTS = ["trend", "early_late", "ordered_buckets", "change_point", "mixed"]
FAMILY = {"measure": "energy.ratio", "where": {"quantity": "gradient", "basis": "fixed"}, "tests": TESTS}
DRIFT = {"measure": "attention.drift_q", "where": {"query_bucket": "all", "key_bucket": "all"}}


def table(tables, spec=SPEC, **families):
    return dynamics_table(tables, {"families": families or {"ratio": FAMILY}}, spec)


def pick(frame, **wanted):
    for column, value in wanted.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def rising(model, step, site, b):
    return np.log10(1 + step) * 2 - b


def test_within_a_run_there_are_effects_with_intervals_and_no_p_value():
    frame = table({"energy": energy(rising)})
    inside = frame[frame["unit"] == "sequence"]
    assert inside["p_value"].isna().all()
    assert inside["note"].str.contains("no population p-value").all()
    slope = pick(inside, statistic="theil_sen_slope_log", site="block.0", bucket="b1")
    assert slope["lo"] < slope["effect"] < slope["hi"]
    assert slope["effect"] == pytest.approx(2.0)
    assert pick(inside, statistic="kendall_tau", site="block.0", bucket="all")["effect"] == pytest.approx(1.0)
    assert pick(inside, statistic="bucket_order", site="embed")["effect"] == pytest.approx(-1.0)
    contrast = pick(inside, test="early_late", site="block.0", bucket="all")
    assert contrast["effect"] < contrast["hi"] < 0


def test_effects_lie_inside_their_intervals():
    noise = np.random.default_rng(0)
    frame = table({"energy": energy(lambda *_: noise.standard_normal(), error=0.5)})
    known = frame[frame["lo"].notna()]
    assert len(known) > 20
    assert ((known["lo"] <= known["effect"] + 1e-12) & (known["effect"] <= known["hi"] + 1e-12)).all()


def test_few_checkpoints_and_few_runs_say_so():
    frame = table({"energy": energy(rising)})
    assert frame.loc[frame["test"] == "change_point", "note"].str.contains("8 of the 20 checkpoints").all()
    assert frame.loc[frame["test"] == "change_point", "effect"].isna().all()
    assert "1 runs: a mixed model needs 10" in pick(frame, test="mixed")["note"]
    assert "1 of the 5 runs" in pick(frame, statistic="mean_kendall_tau")["note"]


def many(n):
    models = [f"run{i:02}" for i in range(n)]
    bend = {m: 0.01 * i for i, m in enumerate(models)}
    tables = {"energy": energy(lambda m, *rest: rising(m, *rest) * (1 + bend[m]) + 9 * bend[m], models=models)}
    return table(tables, SPEC | {"objectives": dict.fromkeys(models, "clm")})


def test_across_six_runs_there_are_p_values_adjusted_in_the_family():
    frame = many(6)
    tau = pick(frame, unit="run", statistic="mean_kendall_tau")
    assert tau["model"] == "clm"
    assert tau["p_value"] == tau["p_min"] == pytest.approx(2 / 64)
    assert tau["p_adjusted"] >= tau["p_value"]
    late = pick(frame, unit="run", test="early_late")
    assert late["p_value"] == late["p_min"] == pytest.approx(2 / 64)
    ordered = pick(frame, unit="run", test="ordered_buckets")
    assert ordered["p_value"] == ordered["p_min"] == pytest.approx(2 / 64)
    held_out = int(frame["p_value"].isna().sum())
    assert frame["note"].str.contains(f"{held_out} of the family's {len(frame)} rows have no p-value").all()


def grouped(runs, objectives=None):
    """Rows of unit run for the models of ``runs``, {model: group}."""
    bend = {m: 0.01 * i for i, m in enumerate(runs)}
    tables = {"energy": energy(lambda m, *rest: rising(m, *rest) + bend[m] * rest[0], models=list(runs))}
    spec = SPEC | {"objectives": objectives or dict.fromkeys(runs, "clm"), "runs": {m: g for m, g in runs.items() if g}}
    frame = table(tables, spec, ratio=FAMILY | {"tests": ["early_late"]})
    return frame[frame["unit"] == "run"].set_index("model")


def test_runs_of_a_group_are_tested_together_and_once():
    frame = grouped({f"decoder-seed{i}": "decoder" for i in range(6)})
    assert list(frame.index) == ["decoder"]
    assert frame.loc["decoder", "n"] == 6
    assert frame.loc["decoder", "p_value"] == frame.loc["decoder", "p_min"] == pytest.approx(2 / 64)
    assert frame.loc["decoder", "lo"] < frame.loc["decoder", "effect"] < frame.loc["decoder", "hi"] < 0


def test_groups_are_pooled_by_objective_as_well_and_a_model_alone_stays_with_its_objective():
    runs = {f"a-seed{i}": "a" for i in range(6)} | {f"b-seed{i}": "b" for i in range(5)} | {"c": "", "d": ""}
    kinds = {m: "mlm" if m == "d" else "clm" for m in runs}
    frame = grouped(runs, kinds)
    assert frame["n"].to_dict() == {"a": 6, "b": 5, "clm": 12, "mlm": 1, "all": 13}
    assert np.isnan(frame.loc["mlm", "p_value"])
    assert frame.loc["b", "p_min"] == pytest.approx(2 / 32)


def test_a_groups_numbers_are_those_of_its_runs_alone():
    runs = {f"a-seed{i}": "a" for i in range(6)}
    both = grouped(runs | {f"b-seed{i}": "b" for i in range(6)})
    assert both.loc["a", ["effect", "lo", "hi", "p_value"]].tolist() == (
        grouped(runs).loc["a", ["effect", "lo", "hi", "p_value"]].tolist()
    )


def test_the_interval_of_a_mean_rank_correlation_stays_within_one():
    tau = pick(many(6), unit="run", statistic="mean_kendall_tau")
    assert -1 <= tau["lo"] <= tau["hi"] <= 1


def test_ten_runs_are_enough_for_a_mixed_model():
    frame = many(10)
    slopes = frame[frame["test"] == "mixed"]
    assert list(slopes["statistic"]) == ["slope", "slope:bucket[T.b1]", "slope:bucket[T.b2]"]
    assert slopes["p_value"].notna().all()


def test_change_point_with_enough_checkpoints():
    steps = tuple(range(0, 101, 4))
    jump = energy(lambda m, step, *_: 3.0 * (step >= 50), steps=steps)
    found = pick(table({"energy": jump}), statistic="change_of_level", site="block.0")
    assert found["effect"] == pytest.approx(3.0)
    assert found["lo"] < 3.0 < found["hi"]


def test_correlation_of_two_quantities_and_its_lag():
    tables = {"attention": attention(lambda head: 0.1)}
    frame = table(tables, drift=DRIFT | {"against": DRIFT, "lag": 1, "tests": ["correlation"]})
    inside = pick(frame, unit="sequence", site="block.0")
    assert inside["effect"] == pytest.approx(1.0)
    assert inside["n"] == 7
    assert "no interval" in inside["note"]


def test_two_objectives_are_pooled_apart_and_together():
    frame = table({"energy": energy(rising, models=("decoder", "encoder"))})
    assert set(frame.loc[frame["unit"] == "run", "model"]) == {"clm", "mlm", "all"}


def test_no_tables_no_rows_and_same_input_same_table():
    assert table({}).empty
    assert many(5).equals(many(5))
