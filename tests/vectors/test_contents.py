"""What a dump says of its rows, and every way in which it can contradict itself."""

import numpy as np
import pytest

from dumped import LENGTH, NAMES, SEQUENCES, SITES, WIDTH, arrays, write
from isotrace.errors import DataError
from isotrace.vectors.contents import coordinates, layout, site_rows
from isotrace.vectors.readers import open_dump

EVERY = {**NAMES, "split": None}
N = SEQUENCES * LENGTH


def dump_of(tmp_path, **edits):
    return open_dump(write(tmp_path / "d.npz", {**arrays(), **edits}))


def test_sites_rows_and_width(tmp_path):
    dump = dump_of(tmp_path)
    of = layout(dump, EVERY, ["low", "high"])
    assert (of.sites, of.n, of.d, of.flat) == (("low", "high"), N, WIDTH, False)
    assert layout(dump, EVERY, None).sites == ("block.0", "block.1")
    assert np.array_equal(site_rows(dump, "acts", of, 1), arrays()["acts"][1])


def test_one_site_needs_no_axis_of_sites(tmp_path):
    flat = {name: arrays()[name][0] for name in ("acts", "grads")}
    dump = dump_of(tmp_path, **flat)
    of = layout(dump, EVERY, None)
    assert (of.sites, of.n, of.d, of.flat) == (("block.0",), N, WIDTH, True)
    assert np.array_equal(site_rows(dump, "grads", of, 0), flat["grads"])


WRONG = [
    ({"grads": np.zeros((SITES, N - 1, WIDTH), np.float32)}, "they must be of the same rows"),
    ({"acts": np.zeros((1, SITES, N, WIDTH), np.float32)}, "has shape"),
    ({"acts": np.zeros((SITES, 0, WIDTH), np.float32)}, "at least one row"),
    ({"acts": np.zeros((SITES, N, WIDTH), np.int32)}, "acts is int32; vectors are"),
]


@pytest.mark.parametrize(("edits", "said"), WRONG, ids=[said for _, said in WRONG])
def test_a_wrong_shape_or_kind_of_vectors_is_named(tmp_path, edits, said):
    with pytest.raises(DataError, match=said):
        layout(dump_of(tmp_path, **edits), EVERY, None)


def test_as_many_names_as_sites(tmp_path):
    with pytest.raises(DataError, match=r"2 sites in acts, 3 named in source\.sites"):
        layout(dump_of(tmp_path), EVERY, ["a", "b", "c"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_counted_and_placed(tmp_path, value):
    rows = arrays()["acts"]
    rows[1, [3, 5], 2] = value
    dump = dump_of(tmp_path, acts=rows)
    of = layout(dump, EVERY, None)
    site_rows(dump, "acts", of, 0)
    with pytest.raises(DataError, match=r"2 rows of acts at block\.1 are not finite"):
        site_rows(dump, "acts", of, 1)


def test_what_is_not_there_is_unknown(tmp_path):
    nothing = dict.fromkeys(EVERY) | {"activations": "acts"}
    known = coordinates(dump_of(tmp_path), nothing, N)
    assert set(known.token_id) == set(known.target_id) == {-1}
    assert np.array_equal(known.sequence, np.arange(N))
    assert not known.position.any()
    assert not known.positions_known
    assert np.isnan(known.loss).all()
    assert known.split is None


def test_without_positions_rows_of_a_sequence_count_in_order(tmp_path):
    order = np.random.default_rng(1).permutation(N)
    known = coordinates(dump_of(tmp_path, seq=arrays()["seq"][order]), {**EVERY, "position": None}, N)
    for sequence in range(SEQUENCES):
        assert np.array_equal(known.position[known.sequence == sequence], np.arange(LENGTH))


BAD = [
    ({"ids": np.full(N, -2)}, "ids runs from -2"),
    ({"ids": np.full(N, 2**24)}, "token_id is 0 to"),
    ({"next": np.full(N, -2)}, "target_id is -1 to"),
    ({"seq": np.zeros(N)}, "an integer for each of the 600 rows"),
    ({"seq": np.zeros(N - 1, int)}, "an integer for each of the 600 rows"),
    ({"nats": np.full(N, np.inf)}, "600 of nats are infinite"),
    ({"nats": np.zeros(N, int)}, "a floating number for each"),
    ({"part": np.full(N, 2)}, "split is 0 to 1"),
    ({"part": np.arange(N) % 2}, "puts rows of sequence 0 into fit and into eval; 30 such sequences"),
]


@pytest.mark.parametrize(("edits", "said"), BAD, ids=[said for _, said in BAD])
def test_coordinates_that_cannot_be_are_named(tmp_path, edits, said):
    names = {**EVERY, "split": "part" if "part" in edits else None}
    with pytest.raises(DataError, match=said):
        coordinates(dump_of(tmp_path, **edits), names, N)
