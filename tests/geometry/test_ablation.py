"""The isotropy table: scores, removal of the tangent, random removals, and what is undefined."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrace.errors import ConfigError
from isotrace.geometry.ablation import inliers, isotropy_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.isotropy import isoscore_corrected, isoscore_plugin, isoscore_star, isoscore_ustat
from isotrace.geometry.moments import moments
from isotrace.geometry.rows import Bucket, Rows

D, N = 12, 160
SPEC: dict[str, Any] = {
    "seed": 0,
    "ranks": [2],
    "null_spaces": ["complement"],
    "draws": 99,
    "draws_corrected": 39,
    "estimators": ["plugin", "star", "ustat", "corrected"],
    "c0": ["scaled_identity", "pooled"],
    "shrinkage": 0.1,
    "conventions": ["complement", "ambient"],
    "outliers": ["kept", "dropped"],
    "outlier_threshold": 10.0,
    "groups": 20,
    "confidence": 0.95,
    "min_rows": 32,
    "order": "shrink_then_remove",
}
COLUMNS = {
    "site", "bucket", "quantity", "basis", "method", "rank", "n_tokens", "estimator", "c0", "shrinkage",
    "convention", "outliers", "score", "score_lo", "score_hi", "score_without_tangent", "null_space",
    "score_without_normal_mean", "score_without_normal_lo", "score_without_normal_hi", "delta_tangent",
    "delta_normal", "p_value", "n_nulls", "anisotropy_share", "reason",
}  # fmt: skip
POOLED = np.diag(np.linspace(1, 2, D))


def bucket(spread: np.ndarray | None = None, outlier: float = 1.0, sequences: int = 40) -> Bucket:
    rng = np.random.default_rng(0)
    scale = np.r_[6.0, 4.0, np.ones(D - 2)] if spread is None else spread
    x = rng.standard_normal((1, N, D)) * scale
    g = rng.standard_normal((1, N, D)) * scale
    x[0, 0] *= outlier
    ids = np.arange(N)
    return Bucket("b0", ("block.0",), x, g, ids, ids % sequences, ids, np.ones(N), np.zeros(N, bool))


def basis(vectors: np.ndarray | None = None) -> Basis:
    v = np.eye(D)[:, :2] if vectors is None else vectors
    return Basis("fixed", "pca", ("block.0",), v[None], np.ones((1, 2)), np.array([N]))


def table(b: Bucket, bases: list[Basis] | None = None, **changes: Any) -> pd.DataFrame:
    pooled = {("block.0", q): POOLED for q in ("activation", "gradient")}
    return isotropy_table(b, bases or [basis()], SPEC | changes, pooled=pooled)


def pick(frame: pd.DataFrame, **where: Any) -> pd.Series:
    where = {"quantity": "activation", "convention": "complement", "outliers": "kept", "c0": "", **where}
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_scores_are_those_of_the_single_functions() -> None:
    b = bucket()
    frame = table(b)
    x = b.activations[0]
    m, left = moments(x), moments(x[:, 2:])
    assert len(frame) == 2 * 5 * 2 * 2
    assert set(frame.columns) == COLUMNS
    assert pick(frame, estimator="plugin").score == pytest.approx(isoscore_plugin(m), rel=1e-12)
    assert pick(frame, estimator="ustat").score == pytest.approx(isoscore_ustat(m), rel=1e-10)
    assert pick(frame, estimator="plugin").score_without_tangent == pytest.approx(isoscore_plugin(left), rel=1e-10)
    assert pick(frame, estimator="ustat").score_without_tangent == pytest.approx(isoscore_ustat(left), rel=1e-10)
    whole = isoscore_corrected(x, b.sequence, groups=20, confidence=0.95)
    row = pick(frame, estimator="corrected")
    np.testing.assert_allclose([row.score, row.score_lo, row.score_hi], [whole.value, whole.lo, whole.hi], rtol=1e-9)
    rest = isoscore_corrected(x[:, 2:], b.sequence, groups=20, confidence=0.95)
    assert row.score_without_tangent == pytest.approx(rest.value, rel=1e-9)
    star = pick(frame, estimator="star", c0="pooled")
    assert star.score == pytest.approx(isoscore_star(m, c0="pooled", shrinkage=0.1, pooled=POOLED), rel=1e-10)
    mixed = (0.9 * m.covariance + 0.1 * POOLED)[2:, 2:]
    expected = (np.trace(mixed) ** 2 / np.square(mixed).sum() - 1) / (D - 3)
    assert star.score_without_tangent == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("order", ["shrink_then_remove", "remove_then_shrink"])
def test_order_of_shrinking_and_removing(order: str) -> None:
    b = bucket()
    c = np.cov(b.activations[0], rowvar=False)
    left = c[2:, 2:]
    scale = np.trace(c) / D if order == "shrink_then_remove" else np.trace(left) / (D - 2)
    mixed = 0.9 * left + 0.1 * scale * np.eye(D - 2)
    row = pick(table(b, order=order), estimator="star", c0="scaled_identity")
    expected = (np.trace(mixed) ** 2 / np.square(mixed).sum() - 1) / (D - 3)
    assert row.score_without_tangent == pytest.approx(expected, rel=1e-10)


def test_removing_the_cause_of_anisotropy_beats_every_draw() -> None:
    frame = table(bucket())
    for estimator, draws in (("plugin", 99), ("ustat", 99), ("corrected", 39)):
        row = pick(frame, estimator=estimator)
        assert row.delta_tangent > 0.4
        assert row.p_value == pytest.approx(1 / (draws + 1))
        assert row.n_nulls == draws
        assert row.score_without_normal_lo < row.score_without_normal_mean < row.score_without_normal_hi
        assert row.delta_normal == pytest.approx(row.score_without_normal_mean - row.score)
        assert row.anisotropy_share == pytest.approx(1, abs=0.05)
    wrong = table(bucket(), [basis(np.eye(D)[:, 6:8])])
    assert pick(wrong, estimator="plugin").p_value > 0.05
    assert pick(wrong, estimator="plugin").anisotropy_share < 0.1


def test_conventions_share_products_and_differ_by_dimension() -> None:
    frame = table(bucket())
    inside = pick(frame, estimator="plugin")
    ambient = pick(frame, estimator="plugin", convention="ambient")
    assert ambient.score == inside.score
    assert ambient.score_without_tangent * (D - 1) == pytest.approx(inside.score_without_tangent * (D - 3))


def test_an_ambient_null_may_overlap_the_tangent() -> None:
    frame = table(bucket(), null_spaces=["complement", "ambient"])
    inside, anywhere = (pick(frame, estimator="plugin", null_space=s) for s in ("complement", "ambient"))
    assert anywhere.score_without_normal_hi > inside.score_without_normal_hi


def test_outlier_rows_are_dropped_beside_the_full_score() -> None:
    frame = table(bucket(np.ones(D), outlier=1e6))
    kept, dropped = (pick(frame, estimator="plugin", outliers=o) for o in ("kept", "dropped"))
    assert kept.score < 0.01
    assert dropped.score > 0.8
    assert (kept.n_tokens, dropped.n_tokens) == (N, N - 1)
    same = table(bucket())
    a, b = (same[same.outliers == o].drop(columns="outliers").reset_index(drop=True) for o in ("kept", "dropped"))
    pd.testing.assert_frame_equal(a, b, check_exact=True)


def test_what_rounding_leaves_of_a_cloud_inside_the_basis_has_no_score() -> None:
    rng = np.random.default_rng(0)
    direction = rng.standard_normal(D)
    rows = np.outer(2.0 ** rng.integers(0, 4, N), direction)[None]
    vectors = np.linalg.qr(np.stack([direction, rng.standard_normal(D)], axis=1))[0]
    ids = np.arange(N)
    b = Bucket("b0", ("block.0",), rows, rows, ids, ids % 40, ids, np.ones(N), np.zeros(N, bool))
    frame = table(b, [basis(vectors)])
    for estimator in ("plugin", "ustat", "corrected"):
        row = pick(frame, estimator=estimator)
        assert np.isnan(row.score_without_tangent)
        assert np.isnan(row.p_value)
        assert "nothing measurable is left" in row.reason
        assert row.anisotropy_share == 1


def test_robust_threshold() -> None:
    values = np.ones((20, 2))
    values[3] = 50
    values[4] = 0
    keep = inliers(Rows(values, np.arange(20), np.arange(20)), 10.0)
    assert np.flatnonzero(~keep).tolist() == [3, 4]
    assert inliers(Rows(np.zeros((4, 2)), np.arange(4), np.arange(4)), 10.0).all()


def test_isotropic_cloud_has_no_anisotropy_to_share() -> None:
    row = pick(table(bucket(np.ones(D))), estimator="plugin")
    assert np.isnan(row.anisotropy_share)
    assert row.reason == "anisotropy_share: the anisotropy is within its noise"
    assert np.isfinite(row.score_without_tangent)


@pytest.mark.parametrize(
    ("changes", "b", "reason"),
    [
        ({"min_rows": 500}, bucket(), "160 rows, fewer than min_rows 500"),
        ({}, bucket(np.zeros(D)), "the rows do not vary"),
        ({"ranks": [7]}, bucket(), "the basis has 2 components, rank 7 asked for"),
    ],
)
def test_what_cannot_be_scored_is_nan_with_a_reason(changes: dict, b: Bucket, reason: str) -> None:
    frame = table(b, **changes)
    rows = frame[frame.quantity == "activation"]
    assert set(rows.reason) == {reason}
    assert rows[["score", "p_value", "anisotropy_share"]].isna().all(axis=None)
    assert len(rows) == len(table(bucket())) // 2
    assert set(frame.columns) == COLUMNS


@pytest.mark.parametrize("sequences", [1, 7])
def test_without_enough_sequences_only_what_needs_the_jackknife_is_missing(sequences: int) -> None:
    frame, full = table(bucket(sequences=sequences)), table(bucket())
    for estimator in ("plugin", "ustat"):
        row = pick(frame, estimator=estimator)
        assert row.score == pytest.approx(pick(full, estimator=estimator).score)
        assert row.p_value == pick(full, estimator=estimator).p_value
        assert np.isnan([row.score_lo, row.anisotropy_share]).all()
        assert "fewer sequences than its 20 groups" in row.reason
    assert np.isfinite(pick(frame, estimator="star", c0="pooled").score_without_normal_mean)
    corrected = pick(frame, estimator="corrected")
    assert np.isnan([corrected.score, corrected.score_without_tangent, corrected.p_value]).all()


def test_nan_always_has_a_reason_and_same_input_gives_same_bytes() -> None:
    narrow = np.zeros(D)
    narrow[:3] = 1
    for b in (bucket(), bucket(narrow), bucket(np.r_[1.0, 1.0, np.zeros(D - 2)])):
        first, second = table(b), table(b)
        pd.testing.assert_frame_equal(first, second, check_exact=True)
        assert (first[first.isna().any(axis=1)].reason != "").all()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("null_spaces", ["variance_weighted"]),
        ("conventions", ["half"]),
        ("outliers", ["some"]),
        ("order", "never"),
        ("estimators", ["median"]),
        ("c0", ["zero"]),
    ],
)
def test_unknown_names_are_config_errors(key: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=rf"isotropy\.{key}"):
        table(bucket(), **{key: value})


def test_pooled_says_nothing_once_outliers_are_dropped() -> None:
    """The covariance over all buckets still holds the row that was dropped here."""
    frame = table(bucket(outlier=1e4))
    pooled = frame[(frame["c0"] == "pooled") & (frame["outliers"] == "dropped")]
    with_outlier = pooled["reason"] == "C0 over all buckets holds the outliers"
    assert with_outlier.any()
    assert pooled.loc[with_outlier, "score"].isna().all()
    assert frame.loc[(frame["c0"] == "pooled") & (frame["outliers"] == "kept"), "score"].notna().all()
