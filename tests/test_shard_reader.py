"""Our reader of shards against zarr's own, on arrays of any cut."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.grids import Grid
from isotrace.shard_reader import read_array
from isotrace.shards import ShardWriter
from isotrace.store import create, open_store, put
from sealed import MAKING


@settings(max_examples=40)
@given(
    shape=st.tuples(st.integers(1, 5), st.integers(1, 11), st.integers(1, 4)),
    run=st.integers(1, 4),
    runs=st.integers(1, 3),
    together=st.integers(1, 5),
    start=st.integers(0, 4),
)
def test_any_cut_reads_as_zarr_reads_it(tmp_path_factory, shape, run, runs, together, start):
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    manifest = tmp_path_factory.mktemp("cut") / "s.json"
    grid = Grid((1, run, shape[2]), (together, run * runs, shape[2]))
    with create(manifest, {}, MAKING) as root:
        writer = ShardWriter(root, "x", shape, np.dtype("<f4"), ("a", "b", "c"), axis=1, grid=grid)
        writer.append(values)
        writer.close()
    array = open_store(manifest)["x"]
    np.testing.assert_array_equal(read_array(array), array[...])
    np.testing.assert_array_equal(read_array(array), values)
    site = start % shape[0]
    np.testing.assert_array_equal(read_array(array, site), values[site])
    np.testing.assert_array_equal(read_array(array, slice(site, None)), values[site:])


def test_what_is_not_sharded_is_read_too(tmp_path):
    with create(tmp_path / "s.json", {}, MAKING) as root:
        put(root, "x", np.arange(6).reshape(2, 3), ("a", "b"))
    np.testing.assert_array_equal(read_array(open_store(tmp_path / "s.json")["x"], 1), [3, 4, 5])


def test_a_site_that_is_not_there_is_an_index_error(tmp_path):
    with create(tmp_path / "s.json", {}, MAKING) as root:
        put(root, "x", np.zeros((2, 700, 800), np.float64), ("a", "b", "c"))
    array = open_store(tmp_path / "s.json")["x"]
    assert array.shards is not None
    with pytest.raises(IndexError):
        read_array(array, 2)
