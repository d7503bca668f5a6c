"""Which rows are kept: the same whatever their order, in the buckets and the split that a corpus would have."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dumped import NAMES, arrays, write
from isotrace.corpus.buckets import bucket_of_ids
from isotrace.errors import DataError
from isotrace.seeding import derived_seed
from isotrace.vectors.choose import Counts, choose, counts_of
from isotrace.vectors.contents import coordinates
from isotrace.vectors.readers import open_dump

SPEC = {
    "seed": 0,
    "eval_fraction": 0.3,
    "names": ["b0", "b1"],
    "buckets": {"kind": "mass", "number": 2, "edges": None, "by": "input"},
    "objective": "clm",
    "exclude_first": True,
    "rows_per_bucket": {"fit": 50, "eval": 40},
}
EVERY = {"fit": 10**6, "eval": 10**6}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    content = arrays()
    dump = open_dump(write(tmp_path_factory.mktemp("choose") / "d.npz", content))
    return coordinates(dump, {**NAMES, "split": None}, len(content["ids"]))


@pytest.fixture(scope="module")
def counts(known):
    return counts_of(known, None, ())


def places(known, chosen):
    return list(zip(known.sequence[chosen.rows], known.position[chosen.rows], chosen.bucket, chosen.split, strict=True))


def test_counts_are_those_of_the_dump_or_of_a_file(tmp_path, known):
    own = counts_of(known, None, (0,)).counts
    assert own[0] == 0
    assert all(own[i] == np.sum(known.token_id == i) for i in range(1, len(own)))
    np.save(tmp_path / "counts.npy", np.arange(64))
    assert np.array_equal(counts_of(known, str(tmp_path / "counts.npy"), ()).counts, np.arange(64))


BAD = [(np.arange(5), "counts of 5 ids, but the dump"), (np.ones(64), "integers"), (-np.arange(64), "integers")]


@pytest.mark.parametrize(("content", "said"), BAD, ids=["few", "real", "negative"])
def test_counts_that_cannot_be_are_named(tmp_path, known, content, said):
    np.save(tmp_path / "counts.npy", content)
    with pytest.raises(DataError, match=said):
        counts_of(known, str(tmp_path / "counts.npy"), ())


def test_buckets_are_those_of_the_ids_and_the_split_is_the_hash_of_the_sequence(known, counts):
    chosen = choose(known, counts, {**SPEC, "rows_per_bucket": EVERY})
    of_ids = bucket_of_ids(counts.counts, (), "mass", n=2)
    assert np.array_equal(chosen.bucket, of_ids[known.token_id[chosen.rows]])
    dealt = [derived_seed(0, "split", int(s)) / 2**63 < 0.3 for s in known.sequence[chosen.rows]]
    assert np.array_equal(chosen.split, np.array(dealt, np.int8))
    assert len(chosen.rows) == np.sum(known.position > 0)


def test_a_split_that_the_dump_names_is_kept(known, counts):
    named = replace(known, split=(known.sequence % 2).astype(np.int64))
    chosen = choose(named, counts, SPEC)
    assert np.array_equal(chosen.split, known.sequence[chosen.rows] % 2)


def test_no_more_rows_than_asked_for_and_each_once(known, counts):
    chosen = choose(known, counts, SPEC)
    for bucket in (0, 1):
        assert [np.sum((chosen.bucket == bucket) & (chosen.split == s)) for s in (0, 1)] == [50, 40]
    assert len(set(chosen.rows.tolist())) == len(chosen.rows)
    assert places(known, chosen) == sorted(places(known, chosen), key=lambda p: (p[2], p[0], p[1]))


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_the_order_of_a_dumps_rows_plays_no_part(known, counts, seed):
    order = np.random.default_rng(seed).permutation(len(known.token_id))
    shuffled = replace(known, **{n: v[order] for n, v in vars(known).items() if isinstance(v, np.ndarray)})
    assert places(shuffled, choose(shuffled, counts, SPEC)) == places(known, choose(known, counts, SPEC))


def test_special_ids_and_first_positions_are_left_out(known):
    special = Counts(counts_of(known, None, (1, 2)).counts, (1, 2))
    chosen = choose(known, special, {**SPEC, "rows_per_bucket": EVERY})
    assert not {1, 2} & set(known.token_id[chosen.rows].tolist())
    assert known.position[chosen.rows].min() == 1
    counted = choose(replace(known, positions_known=False), special, {**SPEC, "rows_per_bucket": EVERY})
    assert known.position[counted.rows].min() == 0


def test_buckets_by_the_predicted_id(known, counts):
    by_target = {**SPEC, "buckets": {**SPEC["buckets"], "by": "target"}, "rows_per_bucket": EVERY}
    chosen = choose(known, counts, by_target)
    of_ids = bucket_of_ids(counts.counts, (), "mass", n=2)
    assert (known.target_id[chosen.rows] >= 0).all()
    assert np.array_equal(chosen.bucket, of_ids[known.target_id[chosen.rows]])
    masked = choose(known, counts, {**by_target, "objective": "mlm"})
    assert np.array_equal(masked.bucket, of_ids[known.token_id[masked.rows]])


def test_without_ids_everything_is_one_bucket(known):
    spec = {**SPEC, "names": ["all"], "buckets": {}}
    chosen = choose(known, Counts(np.zeros(0, np.int64), ()), spec)
    assert set(chosen.bucket) == {0}
    assert len(chosen.rows) == 90


def test_a_bucket_without_a_row_in_a_split_is_named(known, counts):
    with pytest.raises(DataError, match="bucket b0 has no row in eval; add sequences"):
        choose(known, counts, {**SPEC, "eval_fraction": 0.0})
