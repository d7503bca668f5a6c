"""Shared run effects: the published example, invariances, what is flagged, and what it would have cost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import SPEC, run_keys
from scipy.stats import wilcoxon

from isotrace.dynamics.shared import design_effect, intraclass_correlation
from isotrace.dynamics.table import dynamics_table

JUDGES = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], float)
FAMILY = {
    "measure": "geometry.value",
    "where": {"quantity": "activation", "metric": "mean_cosine"},
    "tests": ["early_late", "shared_run"],
}


def test_the_example_of_shrout_and_fleiss():
    found = intraclass_correlation(JUDGES, confidence=0.95)
    assert found.value == pytest.approx(0.7148, abs=1e-4)
    assert (found.lo, found.hi) == pytest.approx((0.342, 0.946), abs=1e-3)


@settings(max_examples=40)
@given(st.integers(0, 999), st.floats(0.1, 10), st.floats(-5, 5))
def test_levels_of_cells_units_and_order_do_not_matter(seed, scale, shift):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((5, 4)) + rng.standard_normal((5, 1))
    moved = scale * values[rng.permutation(5)][:, rng.permutation(4)] + shift * np.arange(4)
    plain, same = (intraclass_correlation(x, confidence=0.9) for x in (values, moved))
    assert (same.value, same.lo, same.hi) == pytest.approx((plain.value, plain.lo, plain.hi), abs=1e-9)
    assert -1 / 3 - 1e-12 <= plain.value <= 1
    assert plain.lo <= plain.value <= plain.hi


def test_cells_that_deviate_alike_or_not_at_all():
    alike = np.arange(3.0)[:, None] + np.arange(4.0)
    assert intraclass_correlation(alike, confidence=0.95).value == 1.0
    assert design_effect(1.0, 24) == 24
    for silent in (np.ones((3, 4)), alike[:1], alike[:, :1]):
        found = intraclass_correlation(silent, confidence=0.95)
        assert np.isnan([found.value, found.lo, found.hi]).all()


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_the_interval_covers_and_nothing_is_flagged_too_often(share):
    rng = np.random.default_rng(1)
    covered, flagged = 0, 0
    for _ in range(400):
        values = np.sqrt(share) * rng.standard_normal((6, 1)) + np.sqrt(1 - share) * rng.standard_normal((6, 24))
        found = intraclass_correlation(values, confidence=0.95)
        covered += found.lo <= share <= found.hi
        flagged += found.lo > 0
    assert covered / 400 >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 400)
    assert flagged / 400 <= 0.025 + 2 * np.sqrt(0.025 / 400) if share == 0 else flagged / 400 > 0.95


def study(runs, *, shared, seed=0, sites=6, buckets=4):
    """Cosines of runs x 24 cells: noise of sd 0.1, and from early to late a change by run of sd ``shared``."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(runs):
        change = shared * rng.standard_normal()
        for step in (0, 20, 50, 80, 100):
            keys = run_keys(f"run{r}", step)
            late = {"early": -0.5, "mid": 0.0, "late": 0.5}[keys["phase"]]
            rows += [
                keys
                | {"site": f"block.{i}", "layer": i, "bucket": f"b{b}", "quantity": "activation"}
                | {"metric": "mean_cosine", "value": 0.05 * i + change * late + 0.1 * rng.standard_normal()}
                | {"lo": np.nan, "hi": np.nan}
                for i in range(sites)
                for b in range(buckets)
            ]
    return pd.DataFrame(rows)


def rows_of(frame):
    models = sorted(set(frame["model"]))
    spec = SPEC | {"objectives": dict.fromkeys(models, "clm")}
    return dynamics_table({"geometry": frame}, {"families": {"cosine": FAMILY}}, spec)


def test_a_shared_run_effect_over_24_cells_is_flagged_with_its_design_effect():
    table = rows_of(study(6, shared=0.5))
    found = table[table["test"] == "shared_run"].set_index("statistic")
    change = found.loc["intraclass_correlation_early_late"]
    assert change["effect"] > 0.5
    assert change["lo"] > 0
    assert change["n"] == 6
    factor = 1 + 23 * change["effect"]
    assert change["note"].startswith(f"shared run effect: design effect {factor:.3g} over 24 cells")
    assert found["p_value"].isna().all()
    inside = table[table["unit"] == "sequence"]
    assert inside["p_value"].isna().all()
    assert inside["note"].str.contains("no population p-value").all()


def test_a_family_without_one_is_not_flagged():
    table = rows_of(study(6, shared=0.0))
    found = table[table["test"] == "shared_run"]
    assert len(found) == 3
    assert found["note"].str.startswith("no shared run effect seen").all()


def test_one_run_or_other_sites_say_that_nothing_can_be_told():
    alone = rows_of(study(1, shared=1.0))
    note = alone.loc[alone["test"] == "shared_run", "note"]
    assert note.str.startswith("1 runs with 24 common cells: two of each are needed").all()
    pair = study(2, shared=1.0)
    apart = pair.assign(site=pair["site"].where(pair["model"] == "run0", "block.9" + pair["site"].str[-1]))
    note = rows_of(apart).loc[lambda f: f["test"] == "shared_run", "note"]
    assert note.str.startswith("2 runs with 0 common cells").all()


def test_what_is_flagged_would_have_been_counted_many_times():
    """Signed rank over the 24 cells of one run, as if they were runs, finds a change in most runs that have none."""
    rejected = 0
    for seed in range(40):
        frame = study(1, shared=0.3, seed=seed)
        by = frame.groupby(["site", "bucket", "phase"])["value"].mean().unstack()
        rejected += wilcoxon(by["early"] - by["late"]).pvalue <= 0.05
    assert rejected / 40 > 0.5
