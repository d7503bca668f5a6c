"""Error rates of the whole pipeline, measured: how often something is found where nothing is true, or something is."""

import numpy as np
import pandas as pd
import pytest
from nothing_true import RUN_TESTS, K, keys, rotated_run, rotation, rows_with_p, too_often, wandering

from isotrace.dynamics.power import power
from isotrace.dynamics.simulate import Design, Variation, over_time
from isotrace.geometry.energy import complement_null as complement
from isotrace.geometry.energy import energy_fraction
from isotrace.geometry.nulls import p_value

pytestmark = pytest.mark.slow
REPETITIONS = 100
RATIO = {"measure": "energy.ratio", "where": {"quantity": "gradient", "basis": "fixed"}, "tests": RUN_TESTS}


def value(metric, **rest):
    return {"measure": "geometry.value", "where": {"quantity": "activation", "metric": metric}} | rest


@pytest.fixture(scope="module")
def rotated():
    """Six runs of six checkpoints, gradients turned by one random rotation a checkpoint: energy rows, tests."""
    models = [f"run{i}" for i in range(6)]
    energies, rows = [], []
    for seed in range(REPETITIONS):
        rng = np.random.default_rng([7, seed])
        energy = pd.concat([rotated_run(rng, m, 6, seed) for m in models], ignore_index=True)
        rows.append(rows_with_p({"energy": energy}, seed, models, ratio=RATIO))
        energies.append(energy.assign(repetition=seed))
    return pd.concat(energies), pd.concat(rows)


@pytest.fixture(scope="module")
def wandered():
    """Ten runs of twelve checkpoints, AR(1) 0.8 without trend: tests of one quantity, and of two against each other."""
    models = [f"run{i}" for i in range(10)]
    rows = []
    for seed in range(REPETITIONS):
        frame = wandering(np.random.default_rng([7, seed]), models, 12)
        cosine, against = value("mean_cosine", tests=[*RUN_TESTS, "mixed", "shared_run"]), value("mean_cosine")
        loss = value("loss", against=against, tests=["correlation"])
        rows.append(rows_with_p({"geometry": frame}, seed, models, cosine=cosine, loss=loss))
    return pd.concat(rows)


def found_too_often(rows):
    by = rows.groupby(["family", "test", "statistic"])["p_value"]
    return {key: rates for key, p in by if (rates := too_often(p))}


def any_rejection(rows):
    """Share of repetitions with an adjusted p of at most 0.05 in a family, by family."""
    least = rows.groupby(["family", "repetition"])["p_adjusted"].min()
    return (least <= 0.05).groupby("family").mean()


LIMIT = 0.05 + 2 * np.sqrt(0.05 * 0.95 / REPETITIONS)


def test_rotated_gradients_show_nothing_over_training(rotated):
    rows = rotated[1]
    assert set(rows["test"]) == set(RUN_TESTS)
    assert found_too_often(rows) == {}
    assert (any_rejection(rows) <= LIMIT).all()


def test_courses_without_trend_show_nothing(wandered):
    assert set(wandered["test"]) == {*RUN_TESTS, "mixed", "correlation"}
    assert found_too_often(wandered) == {}
    assert (any_rejection(wandered) <= LIMIT).all()


def test_rotated_gradients_hold_no_more_energy_in_the_basis_than_in_random_subspaces(rotated):
    """Rates by repetition, since null subspaces of one repetition are shared by its runs and checkpoints."""
    energies = rotated[0]
    one = energies[(energies["site"] == "block.0") & (energies["bucket"] == "b0")]
    for _, part in one.groupby("null_space"):
        for level in (0.01, 0.05, 0.1, 0.25):
            rate = (part["p_value"] <= level).groupby(part["repetition"]).mean()
            assert rate.mean() <= level + 2 * rate.std() / np.sqrt(REPETITIONS)


def test_draws_outside_the_basis_alone_would_be_passed_too_often():
    """Why the larger of two p-values is taken: a steep spectrum, width 16, rank 2."""
    rng, vectors = np.random.default_rng(0), np.eye(16)[:, :K]
    passed = 0
    for seed in range(1000):
        turn = rotation(rng, 16)
        operator = (turn * np.arange(1, 17.0) ** -2) @ turn.T
        null = complement(operator, vectors, 99, seed)
        passed += p_value(null.draws, energy_fraction(operator, vectors)) <= 0.05
    assert passed / 1000 > 0.08


def test_alignment_early_in_training_is_found():
    """Six runs whose early gradients keep most of their energy in the basis, and whose later ones do not."""
    models, seen = [f"run{i}" for i in range(6)], []
    for seed in range(20):
        rng = np.random.default_rng([8, seed])
        energy = [rotated_run(rng, m, 6, seed, aligned=lambda progress: progress <= 0.3) for m in models]
        rows = rows_with_p({"energy": pd.concat(energy, ignore_index=True)}, seed, models, ratio=RATIO)
        seen.append((rows.loc[rows["test"] == "early_late", "p_value"] <= 0.05).all())
    assert np.mean(seen) >= 0.8


def test_a_planted_decline_is_found_by_all_its_tests():
    """Two standard deviations of a run's course from early to late, ten runs."""
    models, rows = [f"run{i}" for i in range(10)], []
    planted = {keys("", i, 12)["step"]: 2 * over_time(np.array(i / 11)) for i in range(12)}
    for seed in range(30):
        frame = wandering(np.random.default_rng([9, seed]), models, 12)
        frame["value"] += frame["step"].map(planted)
        rows.append(
            rows_with_p({"geometry": frame}, seed, models, cosine=value("mean_cosine", tests=[*RUN_TESTS, "mixed"]))
        )
    whole = pd.concat(rows)
    power_of = (whole["p_adjusted"] <= 0.05).groupby(whole["statistic"]).mean()
    assert (power_of[["early_minus_late", "mean_kendall_tau", "mean_theil_sen_slope", "slope"]] >= 0.8).all()


@pytest.mark.parametrize("test", ["early_late", "ordered_buckets"])
def test_effects_that_only_differ_between_runs_are_not_common_ones(test):
    """Page's test alone rejects 20 % of the time here."""
    design, variation = Design(runs=10, checkpoints=10, sites=6, tokens=640), Variation(between_runs=3.0)
    found = power(design, variation, 0.0, test=test, alpha=0.05, repetitions=REPETITIONS, seed=3)
    assert found.power <= LIMIT
