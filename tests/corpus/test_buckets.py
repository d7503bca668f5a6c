"""Buckets by rank, mass and count: b0 is the most frequent, specials and unseen ids have none."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from isotrace.corpus.buckets import bucket_of_ids
from isotrace.errors import ConfigError, DataError

COUNTS = np.array([0, 900, 50, 30, 10, 5, 0, 5], np.int64)


def test_each_kind_on_a_known_vector() -> None:
    assert bucket_of_ids(COUNTS, [2], "rank", n=2).tolist() == [-1, 0, -1, 0, 0, 1, -1, 1]
    assert bucket_of_ids(COUNTS, [], "rank", edges=[1, 3]).tolist() == [-1, 0, 1, 1, 2, 2, -1, 2]
    assert bucket_of_ids(COUNTS, [1], "mass", n=2).tolist() == [-1, -1, 0, 1, 1, 1, -1, 1]
    assert bucket_of_ids(COUNTS, [], "count", edges=[100, 10]).tolist() == [-1, 0, 1, 1, 1, 2, -1, 2]


@given(counts=arrays(np.int64, 40, elements=st.integers(0, 1000)), kind=st.sampled_from(["rank", "mass"]))
def test_buckets_fall_with_frequency(counts: np.ndarray, kind: str) -> None:
    try:
        bucket = bucket_of_ids(counts, [3], kind, n=3)
    except DataError:
        return
    assert bucket[3] == -1
    assert np.array_equal(bucket[np.arange(40) != 3] == -1, counts[np.arange(40) != 3] == 0)
    for higher, lower in ((0, 1), (1, 2)):
        assert counts[bucket == higher].min() >= counts[bucket == lower].max()


def test_equal_mass_is_about_equal() -> None:
    counts = np.round(10_000 / np.arange(1, 2001)).astype(np.int64)
    bucket = bucket_of_ids(counts, [], "mass", n=4)
    shares = np.array([counts[bucket == i].sum() for i in range(4)]) / counts.sum()
    assert np.all(np.abs(shares - 0.25) < 0.07)


def test_an_empty_bucket_is_named() -> None:
    with pytest.raises(DataError, match="bucket b1, b2 of 4 by mass"):
        bucket_of_ids(COUNTS, [], "mass", n=4)
    with pytest.raises(DataError, match="b2 of 3 by rank"):
        bucket_of_ids(COUNTS, [], "rank", edges=[1, 99])


@pytest.mark.parametrize(
    ("kind", "n", "edges", "says"),
    [
        ("size", 3, None, "allowed are rank, mass, count"),
        ("rank", None, None, "one of them"),
        ("rank", 2, [1.0], "one of them"),
        ("rank", None, [3.0, 1.0], "ascend"),
        ("count", None, [1.0, 3.0], "descend"),
        ("count", 3, None, "no n"),
    ],
)
def test_an_impossible_rule_is_a_config_error(kind: str, n: int | None, edges: list[float] | None, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        bucket_of_ids(COUNTS, [], kind, n=n, edges=edges)
