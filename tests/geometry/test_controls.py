"""The table of controls: like the energy table where it says so, optimism, a planted leak, loss, age, reasons."""

from dataclasses import replace

import numpy as np
import pytest
from made_bucket import SITES, SPEC, basis, bucket, haar

from isotrace.geometry.alternatives import ratio
from isotrace.geometry.controls import RATIOS, controls_table
from isotrace.geometry.energy import energy_table
from isotrace.geometry.leak import leaked_rows
from isotrace.geometry.tilting import tilted
from isotrace.tables import finish, with_layers

D = 16
KEYS = ["site", "quantity", "basis", "method", "rank"]


def cell(frame, **wanted):
    wanted = {"site": "embed", "quantity": "gradient", "basis": "fixed", "method": "pca", "rank": 2, **wanted}
    found = frame[np.logical_and.reduce([frame[name] == value for name, value in wanted.items()])]
    assert len(found) == 1
    return found.iloc[0]


def table(evaluation, fit, bases, *, leaked=0, loss=None, **changed):
    target = float(evaluation.loss.mean()) if loss is None else loss
    frame = controls_table(evaluation, fit, bases, {**SPEC, **changed}, leaked=leaked, loss=target)
    return finish("controls", with_layers(frame, SITES), scope="checkpoint")


@pytest.fixture
def splits():
    rng = np.random.default_rng(0)
    return bucket(rng), bucket(rng, first=100)


def pca(rows, k=4):
    """Leading eigenvectors (d, k) of rows (n, d)."""
    return np.linalg.eigh(np.cov(rows.T))[1][:, ::-1][:, :k]


def test_plain_and_variance_weighted_ratios_are_those_of_the_energy_table(splits):
    evaluation, fit = splits
    rng = np.random.default_rng(1)
    kinds = [("fixed", "pca"), ("leave_one_out", "pca"), ("moving", "pca"), ("fixed", "random")]
    bases = [basis(haar(rng, D, 4), kind=kind, method=method) for kind, method in kinds]
    draws = {"complement": 9, "variance_weighted": 49}
    spec = {**SPEC, "null_spaces": ["complement", "variance_weighted"], "draws": draws}
    variance = {site: np.cov(evaluation.rows(site, "activation").values.T) for site in evaluation.sites}
    energies = energy_table(evaluation, bases, spec, variance=variance)
    frame = table(evaluation, fit, bases, centred=False)
    assert set(frame["basis"]) == {"fixed", "leave_one_out"}
    for null, column in (("complement", "ratio"), ("variance_weighted", "ratio_variance_weighted")):
        both = frame.merge(energies[energies["null_space"] == null], on=KEYS, suffixes=("", "_there"))
        there = both["ratio_there"].to_numpy()
        assert len(both) == len(frame)
        assert both[column].to_numpy() == pytest.approx(there, rel=1e-9)
    moving = energies[(energies["basis"] == "moving") & (energies["null_space"] == "complement")]
    both = frame[frame["method"] == "pca"].merge(moving, on=["site", "quantity", "rank"], suffixes=("", "_there"))
    assert both["ratio_moving"].to_numpy() == pytest.approx(both["ratio_there"].to_numpy(), rel=1e-9)


def test_a_basis_of_few_rows_is_optimistic_and_a_planted_leak_hides_it():
    rng = np.random.default_rng(2)
    fit = bucket(rng, n=60, first=100, sites=SITES)
    evaluation = bucket(rng, n=400, sequences=40, sites=SITES)
    fitted = basis(pca(fit.activations[0]), SITES)
    clean = cell(table(evaluation, fit, [fitted]), quantity="activation", rank=4)
    assert clean["optimism_lo"] > 0
    assert clean["optimism_lo"] < clean["optimism"] < clean["optimism_hi"]
    assert clean["leaked"] == 0

    planted = replace(fit, sequence=fit.sequence - 100)
    leaked, _ = leaked_rows(planted, fit, fitted=np.unique(fit.sequence), model_sites=SITES)
    told = cell(table(planted, fit, [fitted], leaked=int(leaked.sum())), quantity="activation", rank=4)
    assert told["leaked"] == 60
    assert told["optimism"] == pytest.approx(0, abs=1e-12)
    assert told["optimism_lo"] < 0 < told["optimism_hi"]
    assert told["ratio"] > 1.5 * clean["ratio"]


def test_a_basis_that_was_fitted_on_neither_split_is_not_optimistic():
    rng = np.random.default_rng(3)
    missed = 0
    for _ in range(40):
        evaluation, fit = bucket(rng, sites=("embed",)), bucket(rng, first=100, sites=("embed",))
        row = cell(table(evaluation, fit, [basis(haar(rng, D, 4), ("embed",))]), rank=4)
        missed += not row["optimism_lo"] <= 0 <= row["optimism_hi"]
    assert missed <= 8


def test_difficult_tokens_count_less_where_the_target_is_lower(splits):
    evaluation, fit = splits
    hard = evaluation.loss > np.median(evaluation.loss)
    vectors = np.eye(D)[:, :4]
    gradients = evaluation.gradients + 6 * hard[None, :, None] * (np.arange(D) < 4)
    evaluation = replace(evaluation, gradients=gradients)
    target = float(np.quantile(evaluation.loss, 0.2))
    row = cell(table(evaluation, fit, [basis(vectors)], loss=target), rank=4)
    weights = tilted(evaluation.loss, target)
    weighted = (gradients[0] * weights[:, None]).T @ gradients[0]
    assert row["ratio_loss_balanced"] == pytest.approx(ratio(weighted, vectors), rel=1e-9)
    assert row["ratio_loss_balanced"] < 0.8 * row["ratio"]
    assert row["n_effective"] == pytest.approx(weights.sum() ** 2 / (weights**2).sum(), rel=1e-9)
    same = cell(table(evaluation, fit, [basis(vectors)]), rank=4)
    assert same["ratio_loss_balanced"] == pytest.approx(same["ratio"], rel=1e-6)


def test_the_largest_dimensions_of_activations_are_dropped_from_gradients(splits):
    evaluation, fit = splits
    large = 1 + 30 * np.isin(np.arange(D), [3, 9, 12])
    evaluation = replace(evaluation, activations=evaluation.activations * large, gradients=evaluation.gradients * large)
    vectors = np.eye(D)[:, [3, 9, 12, 0]]
    row = cell(table(evaluation, fit, [basis(vectors)]), rank=4)
    kept = np.delete(evaluation.gradients[0], [3, 9, 12], axis=1)
    assert row["ratio"] > 50
    assert row["ratio_outliers_dropped"] == pytest.approx(ratio(kept.T @ kept, np.eye(D - 3)[:, :1]), rel=1e-9)


def test_the_order_of_rows_does_not_matter(splits):
    evaluation, fit = splits
    order = np.random.default_rng(4).permutation(160)
    names = ("token_id", "sequence", "position", "loss", "masked")
    arrays = {name: getattr(evaluation, name)[order] for name in names}
    arrays |= {name: getattr(evaluation, name)[:, order] for name in ("activations", "gradients")}
    bases = [basis(haar(np.random.default_rng(5), D, 4))]
    before, after = (table(one, fit, bases) for one in (evaluation, replace(evaluation, **arrays)))
    numbers = [*RATIOS[:-1], "n_effective", "optimism", "optimism_lo", "optimism_hi"]
    assert after[numbers].to_numpy() == pytest.approx(before[numbers].to_numpy(), rel=1e-9, abs=1e-12)


def test_of_a_masked_model_only_masked_rows_have_a_loss(splits):
    evaluation, fit = splits
    masked = np.arange(160) % 4 == 0
    part = replace(evaluation, masked=masked, loss=np.where(masked, evaluation.loss, np.nan))
    vectors = haar(np.random.default_rng(6), D, 4)
    row = cell(table(part, fit, [basis(vectors)], loss=float(evaluation.loss[masked].mean())), rank=4)
    rows = part.gradients[0][masked]
    assert row["ratio_loss_balanced"] == pytest.approx(ratio(rows.T @ rows, vectors), rel=1e-6)
    assert row["n_effective"] == pytest.approx(40)


def test_each_gap_names_its_column(splits):
    evaluation, fit = splits
    bases = [basis(haar(np.random.default_rng(7), D, 4), method="random")]
    row = cell(table(evaluation, replace(fit, gradients=0 * fit.gradients), bases, loss=99.0), method="random")
    reasons = dict(part.split(": ", 1) for part in row["reason"].split("; "))
    assert set(reasons) == {"ratio_loss_balanced", "ratio_moving", "optimism"}
    assert reasons["optimism"] == "fit rows: 0 rows, fewer than min_rows 32"
    assert "a mean loss of 99, that of all buckets, is outside this bucket's" in reasons["ratio_loss_balanced"]
    assert np.isnan(row["n_effective"])


def test_tilting_to_the_end_of_a_bucket_leaves_too_few_rows(splits):
    evaluation, fit = splits
    target = float(evaluation.loss.max()) * 0.98
    row = cell(table(evaluation, fit, [basis(np.eye(D)[:, :4])], loss=target))
    assert "effective rows, fewer than min_rows 32" in row["reason"]


def test_without_rows_or_components_no_number_is_given(splits):
    evaluation, fit = splits
    empty = replace(evaluation, gradients=0 * evaluation.gradients)
    vectors = haar(np.random.default_rng(8), D, 4)
    vectors[:, 3] = np.nan
    frame = table(empty, fit, [basis(vectors)])
    numbers = [*RATIOS, "n_effective", "optimism", "optimism_lo", "optimism_hi"]
    none = cell(frame)
    assert none["reason"] == "0 rows, fewer than min_rows 32"
    short = cell(frame, quantity="activation", rank=4)
    assert short["reason"] == "the basis has 3 components, rank 4 asked for"
    assert none[numbers].isna().all()
    assert short[numbers].isna().all()
    assert cell(frame, quantity="activation")[numbers].notna().sum() == len(numbers) - 1
