"""Power: against closed forms, monotone in what is spent, and what the command says."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import SITES, energy
from scipy.stats import norm

from isotrace import tables
from isotrace.cli import main
from isotrace.dynamics.components import autocorrelation, components
from isotrace.dynamics.contrasts import early_minus_late
from isotrace.dynamics.power import power, power_of_draws, smallest
from isotrace.dynamics.series import run_means
from isotrace.dynamics.simulate import Design, Variation, ar1, over_buckets, phases, simulated

QUIET = Variation(between_runs=0.5, within_run=1e-9, cells=1e-9, autocorrelation=0.0, sampling=1e-9)
SMALL = Design(runs=6, checkpoints=8, sites=2, tokens=640)


def test_six_runs_reject_when_all_have_one_sign_and_as_often_as_that_happens():
    """With six runs p <= 0.05 only where all signs agree: Phi(e/s)^6 + Phi(-e/s)^6."""
    expected = norm.cdf(0.5 / 0.5) ** 6 + norm.cdf(-0.5 / 0.5) ** 6
    found = power(SMALL, QUIET, 0.5, test="early_late", alpha=0.05, repetitions=400, seed=1)
    assert found.p_min == 2 / 64
    assert abs(found.power - expected) <= 4 * found.error


def test_five_runs_cannot_and_four_have_no_p_value():
    five = power(replace(SMALL, runs=5), QUIET, 99.0, test="early_late", alpha=0.05, repetitions=2, seed=0)
    assert (five.power, five.p_min) == (0.0, 0.0625)
    four = power(replace(SMALL, runs=4), QUIET, 99.0, test="early_late", alpha=0.05, repetitions=2, seed=0)
    assert four.power == 0.0
    assert np.isnan(four.p_min)


@pytest.mark.parametrize("test", ["early_late", "trend", "ordered_buckets"])
def test_a_planted_effect_beyond_all_noise_is_always_seen(test):
    found = power(SMALL, Variation(), 9.0, test=test, alpha=0.05, repetitions=5, seed=0)
    assert found.power == 1.0


def test_the_planted_effect_is_the_difference_of_means():
    still = replace(QUIET, between_runs=0.0)
    runs = run_means(simulated(SMALL, still, 0.7, np.random.default_rng(0), ordered=False))
    assert [float(early_minus_late(r.value, r.phase)) for r in runs] == pytest.approx([0.7] * 6, abs=1e-6)
    levels = [s.value.mean() for s in simulated(SMALL, still, 0.7, np.random.default_rng(0), ordered=True)]
    assert levels[:4] == pytest.approx(0.7 * over_buckets(4), abs=1e-6)


def test_courses_have_variance_one_and_the_stated_correlation():
    y = ar1(np.random.default_rng(0), (4000, 12), 0.8)
    assert np.var(y, axis=0) == pytest.approx(np.ones(12), abs=0.1)
    assert np.mean(y[:, 1:] * y[:, :-1]) == pytest.approx(0.8, abs=0.03)


@settings(max_examples=30)
@given(st.integers(1, 2000), st.floats(0, 1))
def test_power_of_draws_is_the_chance_of_few_draws_reaching(draws, tail):
    found = power_of_draws(draws, tail, alpha=0.05)
    reached = np.random.default_rng(0).binomial(draws, tail, 4000)
    assert found == pytest.approx(np.mean((1 + reached) / (1 + draws) <= 0.05), abs=0.05)


def test_eighteen_draws_show_nothing_and_nineteen_may():
    assert power_of_draws(18, 0.0, alpha=0.05) == 0.0
    assert power_of_draws(19, 0.0, alpha=0.05) == 1.0


def test_the_smallest_design_has_the_fewest_runs_then_checkpoints():
    asked = [Design(runs=r, checkpoints=c, sites=1, tokens=9) for r in (8, 6) for c in (20, 10)]
    found = [power(d, QUIET, 9.0, test="early_late", alpha=0.05, repetitions=1, seed=0) for d in asked]
    assert smallest(found).design == asked[3]
    assert smallest([replace(p, power=0.79) for p in found]) is None


def varied(models=40, *, between, within, cells, rho, error):
    """An energy table of log ratios with these components, on a line over training."""
    rng = np.random.default_rng(0)
    steps, names = tuple(range(0, 101, 5)), [f"m{i:02}" for i in range(models)]
    progress = np.array(steps) / 100
    late = {"early": 0.5, "mid": 0.0, "late": -0.5}
    shape = np.array([late[p] for p in phases(progress)])
    own = {m: between * rng.standard_normal() for m in names}
    course = {m: within * ar1(rng, (len(steps),), rho) for m in names}
    cell = {m: cells * ar1(rng, (12, len(steps)), rho) for m in names}
    place = {at: i for i, at in enumerate(product(SITES, range(3)))}

    def height(model, step, site, b):
        i = steps.index(step)
        return 2 + own[model] * shape[i] + course[model][i] + cell[model][place[site, b]][i]

    return energy(height, models=names, steps=steps, error=error).assign(n_tokens=160)


def test_components_of_a_study_are_found_again():
    table = varied(between=1.0, within=0.4, cells=0.3, rho=0.5, error=0.196)
    found, notes = components(table, rank=8, method="pca", confidence=0.95)
    assert found.within_run == pytest.approx(0.4, rel=0.25)
    assert found.cells == pytest.approx(0.3, rel=0.15)
    assert found.autocorrelation == pytest.approx(0.5, abs=0.15)
    assert found.between_runs == pytest.approx(1.0, rel=0.35)
    assert found.sampling == pytest.approx(0.1 * np.sqrt(160 / 640), rel=0.02)
    assert notes == ["between runs is of 40 models, whatever sets them apart"]


def test_few_runs_cannot_tell_how_runs_differ():
    found, notes = components(
        varied(2, between=1.0, within=0.4, cells=0.3, rho=0.5, error=0.1), rank=8, method="pca", confidence=0.95
    )
    assert found.between_runs == Variation().between_runs
    assert notes == ["between runs 0.3 is supposed: 2 of the 5 runs that could tell it"]


def test_autocorrelation_of_white_noise_off_a_line_is_none():
    rng = np.random.default_rng(0)
    x = np.arange(10.0)
    off = [y - np.polynomial.Polynomial.fit(x, y, 1)(x) for y in rng.standard_normal((400, 10))]
    assert autocorrelation(off) == pytest.approx(0.0, abs=0.1)


def test_the_command_prints_designs_and_one_sentence(tmp_path, capsys):
    frame = varied(2, between=0.1, within=0.1, cells=0.1, rho=0.3, error=0.1)
    missing = ["tokens_seen", "null_mean", "null_mean_exact", "null_sd_exact", "z", "p_value", "n_nulls"]
    frame = frame.assign(**dict.fromkeys(missing, np.nan), reason="made up")
    (tmp_path / "tables").mkdir()
    tables.write(tmp_path / "tables" / "energy.parquet", frame, "energy")
    options = ["--results", str(tmp_path), "--effect", "3", "--runs", "8,6", "--repetitions", "5", "--draws", "20"]
    assert main(["power", *options]) == 0
    printed = capsys.readouterr().out
    assert "Smallest design with power 0.8 or more: 6 runs of 10 checkpoints, 6 sites" in printed
    assert "   6           10      6        4     640       0.031   1.00" in printed
    assert "   20       0.048" in printed
    assert main(["power", *options]) == 0
    assert capsys.readouterr().out == printed


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (["--runs", "6,x"], "power --runs: '6,x' is not whole numbers of 2 or more"),
        (["--alpha", "2"], "power --alpha: 2.0 is not between 0 and 1"),
        (["--repetitions", "0"], "power --repetitions: 0 is not 1 or more"),
        (["--test", "ordered_buckets", "--buckets", "2"], "power --buckets: 2; an order needs three buckets"),
        (["--results", "nowhere"], "energy.parquet: not there; power --results takes the results folder"),
    ],
)
def test_a_wrong_option_is_one_line(capsys, options, line):
    assert main(["power", *options]) == 1
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
