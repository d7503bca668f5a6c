"""Runs of a group share a panel: lines are means over runs, shading their range, however many runs there are."""

import numpy as np
import pytest
import synthetic

from isotrace.figures import frames, registry, style
from isotrace.figures.energy_over_training import data

RUNS = {f"decoder-seed{i}": "decoder" for i in range(6)}
NAMES = ("energy_over_training", "isotropy_ablation", "early_late", "cosine_over_training", "frequency_geometry",
         "attention_over_training", "cosine_by_depth", "attention_sinks", "loss_against_isotropy")  # fmt: skip


def tables(models):
    """Made-up tables whose models end in their seed."""
    found = synthetic.all_tables(models=tuple(models), buckets=("b0", "b1"), steps=(0, 4, 64, 800))
    return {name: f.assign(seed=f["model"].str[-1].replace("r", "0").astype(int)) for name, f in found.items()}


@pytest.mark.parametrize("name", NAMES)
def test_six_runs_take_no_more_room_than_one_model(name):
    draw = registry.find(name)
    fig, drawn = draw(frames.one_a_group(tables(RUNS), RUNS), {})
    one, _ = draw(tables(["decoder"]), {})
    assert set(drawn["model"]) == {"decoder"}
    assert set(drawn["seeds"].dropna()) == {6}
    assert len(fig.axes) == len(one.axes)
    with style.style():
        fig.draw_without_rendering()


def test_the_line_is_the_mean_over_runs_and_the_shading_their_range():
    energy = tables(RUNS)["energy"]
    energy["ratio"] = 10.0 * 2.0 ** energy["seed"]
    drawn = data(frames.one_a_group({"energy": energy}, RUNS), {})
    np.testing.assert_allclose(drawn["ratio"], 10 * 2**2.5)
    np.testing.assert_allclose(drawn[["lo", "hi"]], [[10, 320]] * len(drawn))
    assert set(drawn["interval"]) == {"range over seeds"}


def test_a_model_that_is_no_run_stays_as_it_is():
    before = tables([*RUNS, "encoder"])
    after = frames.one_a_group(before, RUNS)
    kept = after["energy"][after["energy"]["model"] == "encoder"]
    assert kept.equals(before["energy"][before["energy"]["model"] == "encoder"])
    assert set(before["energy"]["model"]) == {*RUNS, "encoder"}
    assert frames.one_a_group(before, {})["geometry"].equals(before["geometry"])


def test_a_run_without_a_value_is_left_out_of_the_mean():
    energy = tables(RUNS)["energy"]
    energy["ratio"] = 10.0 * 2.0 ** energy["seed"]
    lost = (energy["seed"] == 5) & (energy["step"] == 4)
    energy.loc[lost, ["ratio", "energy", "energy_lo", "energy_hi"]] = np.nan
    energy.loc[lost, "reason"] = "12 rows, fewer than 32"
    drawn = data(frames.one_a_group({"energy": energy}, RUNS), {}).set_index("step")
    np.testing.assert_allclose(drawn.loc[4, "ratio"], 10 * 2**2.0)
    assert set(drawn.loc[4, "seeds"]) == {5}
    assert set(drawn.loc[64, "seeds"]) == {6}


def test_tokens_are_those_of_one_run():
    before = {"frequency_points": synthetic.frequency_points((*RUNS, "encoder"))}
    after = frames.one_a_group(before, RUNS)["frequency_points"]
    own = before["frequency_points"]["model"].isin(["decoder-seed0", "encoder"])
    assert after.drop(columns="model").equals(before["frequency_points"][own].drop(columns="model"))
    assert set(after["model"]) == {"decoder", "encoder"}
