"""Tokens at the ends of planted directions."""

import numpy as np
import pytest

from isotrace.geometry.bases import Basis
from isotrace.geometry.components import component_table, type_scores
from isotrace.geometry.rows import Rows

SPEC = {"components": 2, "top_tokens": 2, "min_occurrences": 3}
PLACES = {7: 4.0, 3: 2.0, 9: 0.0, 1: -1.0, 5: -5.0}
D = 6


def rows_of(places, each=10, seed=0):
    """Rows of each type around its place on the second axis, with little noise."""
    rng = np.random.default_rng(seed)
    token_id = np.repeat(list(places), each)
    values = 0.01 * rng.standard_normal((len(token_id), D))
    values[:, 1] += np.repeat(list(places.values()), each)
    values[:, 0] += 3 * rng.standard_normal(len(token_id))
    return Rows(values, np.arange(len(token_id)), token_id)


def basis(vectors=None):
    vectors = np.eye(D)[:, :2] if vectors is None else vectors
    return Basis("fixed", "pca", ("block.0",), vectors[None], np.array([[9.0, 4.0]]), np.array([100]))


def table(rows, spec=SPEC, found=None):
    return component_table(found or basis(), {"block.0": rows}, {i: f"b{i % 2}" for i in range(10)}, spec)


def test_planted_ends_are_found_in_order():
    second = table(rows_of(PLACES)).query("component == 2")
    assert second.query("sign == '+'")["token_id"].tolist() == [7, 3]
    assert second.query("sign == '-'")["token_id"].tolist() == [5, 1]
    assert second["order"].tolist() == [1, 2, 1, 2]
    assert second["bucket"].tolist() == ["b1", "b1", "b1", "b1"]
    assert set(second["n_occurrences"]) == {10}
    assert set(second["explained_variance"]) == {4.0}


def test_a_score_is_the_types_mean_in_standard_deviations_of_a_row():
    rows = rows_of(PLACES)
    types, counts, scores = type_scores(rows, np.eye(D)[:, :2], occurrences=3)
    line = rows.values[:, 1]
    for token, score in zip(types, scores[:, 1], strict=True):
        assert score == pytest.approx((line[rows.token_id == token].mean() - line.mean()) / line.std())
    assert counts.tolist() == [10] * 5
    shifted = Rows(7 * rows.values + 2, rows.sequence, rows.token_id)
    np.testing.assert_allclose(type_scores(shifted, np.eye(D)[:, :2], occurrences=3)[2], scores, atol=1e-10)


def test_turning_a_direction_round_swaps_its_ends():
    there = table(rows_of(PLACES)).query("component == 2")
    back = table(rows_of(PLACES), found=basis(-np.eye(D)[:, :2])).query("component == 2")
    plus, minus = there.query("sign == '+'"), back.query("sign == '-'")
    assert plus["token_id"].tolist() == minus["token_id"].tolist()
    np.testing.assert_allclose(plus["score"], -minus["score"])


def test_no_type_stands_at_both_ends_and_rare_ones_at_none():
    rare = Rows(
        *(
            np.concatenate([getattr(rows_of(PLACES), k), getattr(rows_of({8: 99.0}, 2), k)])
            for k in ("values", "sequence", "token_id")
        )
    )
    found = table(rare, SPEC | {"top_tokens": 10}).query("component == 2")
    assert 8 not in set(found["token_id"])
    assert len(found) == 4
    assert found["token_id"].is_unique


def test_where_nothing_can_be_shown_one_row_says_why():
    lone = table(rows_of({7: 1.0}))
    assert lone["reason"].tolist() == ["1 types with 3 or more rows, fewer than 2"] * 2
    assert lone["score"].isna().all()
    unknown = Rows(rows_of(PLACES).values, np.arange(50), np.full(50, -1))
    assert table(unknown)["reason"].tolist() == ["0 types with 3 or more rows, fewer than 2"] * 2
    lame = np.eye(D)[:, :2].copy()
    lame[:, 1] = np.nan
    found = table(rows_of(PLACES), found=basis(lame))
    assert found.query("component == 2")["reason"].tolist() == ["the data do not determine this direction"]
    assert (found.query("component == 1")["reason"] == "").all()
