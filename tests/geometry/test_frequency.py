"""Frequency against geometry: planted correlations, leave-self-out centroid, no correlation from noise alone."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from isotrace.geometry.frequency import (
    COLUMNS,
    centroid_distance,
    contextual_means,
    frequency_points,
    frequency_table,
    halved_means,
    spearman,
    spearman_interval,
    squared_length,
)
from isotrace.geometry.rows import Rows

SPEC = {
    "seed": 0,
    "occurrences": 8,
    "noise": "equal_occurrences",
    "min_types": 20,
    "resamples": 200,
    "confidence": 0.95,
}
NONE = np.empty(0, int)


def row(table: pd.DataFrame, site: str, kind: str, of: str) -> pd.Series:
    return table[(table.site == site) & (table.kind == kind) & (table.of == of)].iloc[0]


def test_planted_static_correlation() -> None:
    random = np.random.default_rng(0)
    counts = random.integers(1, 10_000, size=300)
    directions = random.normal(size=(300, 40))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    table = frequency_table(
        embedding=directions / np.log(1 + counts)[:, None], counts=counts, excluded=NONE, contextual={}, spec=SPEC
    )
    assert list(table.columns) == COLUMNS
    norm = row(table, "embed", "static", "norm")
    assert norm.spearman == pytest.approx(-1.0)
    assert norm.n_types == 300
    distance = row(table, "embed", "static", "centroid_distance")
    assert distance.lo <= distance.spearman <= distance.hi < -0.8
    assert (table.reason == "").all()


def test_unseen_and_special_ids_stay_out() -> None:
    random = np.random.default_rng(1)
    embedding, counts = random.normal(size=(100, 6)), random.integers(1, 50, size=100)
    counts[90:] = 0
    embedding[90:] = 1e6
    embedding[:3] = 1e6
    table = frequency_table(embedding=embedding, counts=counts, excluded=np.arange(3), contextual={}, spec=SPEC)
    assert set(table.n_types) == {87}
    kept = slice(3, 90)
    expected = spearmanr(counts[kept], np.linalg.norm(embedding[kept], axis=1)).statistic
    assert row(table, "embed", "static", "norm").spearman == pytest.approx(expected)


def test_centroid_leaves_the_type_itself_out() -> None:
    values = np.random.default_rng(2).normal(size=(9, 4))
    expected = [np.linalg.norm(values[i] - np.delete(values, i, axis=0).mean(axis=0)) for i in range(9)]
    np.testing.assert_allclose(centroid_distance(values), expected)


def noise_rows(counts: np.ndarray) -> Rows:
    token_id = np.repeat(np.arange(len(counts)), counts)
    values = np.random.default_rng(3).normal(size=(len(token_id), 30))
    return Rows(values, np.zeros(len(token_id), int), token_id)


@pytest.mark.parametrize("noise", ["equal_occurrences", "halves"])
def test_sampling_noise_alone_gives_no_contextual_correlation(noise: str) -> None:
    """Means over all occurrences shrink as 1/sqrt(count) and correlate near -1; neither way out does."""
    counts = np.arange(8, 128)
    rows = noise_rows(counts)
    plain = [np.linalg.norm(rows.values[rows.token_id == t].mean(axis=0)) for t in range(len(counts))]
    assert spearmanr(counts, plain).statistic < -0.9
    spec = {**SPEC, "noise": noise}
    table = frequency_table(embedding=None, counts=counts, excluded=NONE, contextual={"block.0": rows}, spec=spec)
    for of in ("norm", "centroid_distance"):
        found = row(table, "block.0", "contextual", of)
        assert found.lo < 0 < found.hi
        assert found.n_types == 120


def under_no_correlation(noise: str, samples: int) -> dict[str, np.ndarray]:
    """(spearman, misses 0) of samples with equal type means off the origin and anisotropic scatter."""
    counts = np.arange(8, 88)
    token_id, spread = np.repeat(np.arange(80), counts), 1.0 / np.arange(1, 13)
    found: dict[str, list[tuple[float, bool]]] = {"norm": [], "centroid_distance": []}
    for seed in range(samples):
        values = 1 + spread * np.random.default_rng([7, seed]).normal(size=(len(token_id), 12))
        rows = {"block.0": Rows(values, np.zeros(len(token_id), int), token_id)}
        spec = {**SPEC, "noise": noise, "seed": seed}
        table = frequency_table(embedding=None, counts=counts, excluded=NONE, contextual=rows, spec=spec)
        for of, values_of in found.items():
            one = row(table, "block.0", "contextual", of)
            values_of.append((one.spearman, not one.lo <= 0 <= one.hi))
    return {of: np.array(values_of, float) for of, values_of in found.items()}


@pytest.mark.slow
def test_equal_occurrences_miss_zero_as_rarely_as_they_say() -> None:
    for values in under_no_correlation("equal_occurrences", 200).values():
        assert values[:, 1].mean() <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)
        assert abs(values[:, 0].mean()) <= 3 * values[:, 0].std() / np.sqrt(200)


@pytest.mark.slow
def test_halves_are_within_a_few_hundredths_of_no_correlation() -> None:
    """A product of halves is skewed where the mean is not 0, so the norm's correlation comes out slightly high."""
    for values in under_no_correlation("halves", 200).values():
        assert abs(values[:, 0].mean()) <= 0.05
        assert values[:, 1].mean() <= 0.12


def test_halves_share_no_row_and_leave_none_out() -> None:
    rows = noise_rows(np.array([2, 9, 5, 40]))
    ids, first, second = halved_means(rows, excluded=np.array([1]), occurrences=3, seed=0)
    assert ids.tolist() == [2, 3]
    for i, a, b, sizes in zip(ids, first, second, ((3, 2), (20, 20)), strict=True):
        own = rows.values[rows.token_id == i]
        np.testing.assert_allclose(sizes[0] * a + sizes[1] * b, own.sum(axis=0))


def test_squared_length_is_right_on_average_where_the_plain_one_is_not() -> None:
    """Means of 6 rows: |mean|^2 is 5 + 30/6 on average; the halves give 5, and about 0 as often below as above."""
    rows = noise_rows(np.full(2000, 6))
    _, *noise = halved_means(rows, excluded=NONE, occurrences=2, seed=0)
    assert np.mean(squared_length(*noise) > 0) == pytest.approx(0.5, abs=0.04)
    rows.values[:, 0] += np.sqrt(5)
    _, *halves = halved_means(rows, excluded=NONE, occurrences=2, seed=0)
    assert squared_length(*halves).mean() == pytest.approx(5, abs=0.3)
    assert np.sum(((halves[0] + halves[1]) / 2) ** 2, axis=1).mean() == pytest.approx(10, abs=0.3)


def test_planted_correlation_survives_the_halves() -> None:
    counts = np.arange(8, 128)
    rows = noise_rows(counts)
    rows.values[:, 0] += 30 / rows.token_id.clip(1)
    spec = {**SPEC, "noise": "halves"}
    table = frequency_table(embedding=None, counts=counts, excluded=NONE, contextual={"block.0": rows}, spec=spec)
    assert row(table, "block.0", "contextual", "norm").hi < -0.2


def test_contextual_means_use_the_same_occurrences_at_every_site() -> None:
    rows = noise_rows(np.full(30, 20))
    doubled = Rows(2 * rows.values, rows.sequence, rows.token_id)
    ids, means = contextual_means(rows, excluded=np.array([4]), occurrences=8, seed=0)
    assert 4 not in ids
    assert len(ids) == 29
    np.testing.assert_allclose(contextual_means(doubled, excluded=np.array([4]), occurrences=8, seed=0)[1], 2 * means)
    everything = contextual_means(rows, excluded=NONE, occurrences=20, seed=0)[1]
    np.testing.assert_allclose(everything[7], rows.values[rows.token_id == 7].mean(axis=0))
    assert len(contextual_means(rows, excluded=NONE, occurrences=21, seed=0)[0]) == 0


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=5, max_size=40))
def test_spearman_equals_scipy_with_ties(pairs: list[tuple[int, int]]) -> None:
    x, y = np.array(pairs, float).T
    if len(set(x)) == 1 or len(set(y)) == 1:
        assert np.isnan(spearman(x, y))
        return
    assert spearman(x, y) == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_bootstrap_equals_resampling_by_hand() -> None:
    random = np.random.default_rng(4)
    x, y = random.integers(0, 9, size=50).astype(float), random.normal(size=50)
    lo, hi = spearman_interval(x, y, resamples=100, confidence=0.9, random=np.random.default_rng(5))
    again = np.random.default_rng(5)
    draws = [spearmanr(x[i], y[i]).statistic for i in (again.integers(0, 50, size=50) for _ in range(100))]
    assert (lo, hi) == (pytest.approx(np.quantile(draws, 0.05)), pytest.approx(np.quantile(draws, 0.95)))


def test_no_value_has_a_reason() -> None:
    counts = np.arange(1, 31)
    few = frequency_table(
        embedding=np.eye(30),
        counts=counts,
        excluded=np.arange(15),
        contextual={"embed": noise_rows(np.full(30, 2))},
        spec=SPEC,
    )
    assert few.spearman.isna().all()
    assert row(few, "embed", "static", "norm").reason == "15 types, fewer than 20"
    assert row(few, "embed", "contextual", "norm").reason == "0 types, fewer than 20"
    same = frequency_table(embedding=np.eye(30), counts=counts, excluded=NONE, contextual={}, spec=SPEC)
    assert "same for every type" in row(same, "embed", "static", "norm").reason
    none = frequency_table(embedding=None, counts=counts, excluded=NONE, contextual={}, spec=SPEC)
    assert set(none.reason) == {"the model has no input embedding"}


def test_points_are_a_sample_of_the_static_types() -> None:
    random = np.random.default_rng(6)
    embedding, counts = random.normal(size=(400, 5)), random.integers(0, 9, size=400)
    points = frequency_points(embedding=embedding, counts=counts, excluded=np.arange(2), seed=0, max_types=100)
    assert list(points.columns) == ["token_id", "count", "norm", "centroid_distance"]
    assert len(points) == 100
    assert points.token_id.is_monotonic_increasing
    assert (points["count"] > 0).all()
    np.testing.assert_allclose(points.norm, np.linalg.norm(embedding[points.token_id], axis=1))
