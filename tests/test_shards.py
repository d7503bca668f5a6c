"""Arrays written piece by piece: what plain zarr and xarray read back, in which files, and what is refused."""

import hashlib
import tracemalloc

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace import grids
from isotrace.encoding import Encoding, rounded
from isotrace.errors import DataError
from isotrace.grids import CHUNK_BYTES, SHARD_BYTES, Grid, block_grid, run_grid
from isotrace.shards import RunWriter, ShardWriter
from isotrace.store import create, open_store, read_manifest, store_path
from isotrace.stored_rows import read_rows
from sealed import MAKING

RNG = np.random.default_rng(0)
DIMS = ("site", "token", "feature")


def cuts(n: int, parts: list[int]) -> list[slice]:
    """Slices of 0 … n of the given lengths in turn, the last one shorter."""
    found, start = [], 0
    while start < n:
        found.append(slice(start, min(start + parts[len(found) % len(parts)], n)))
        start = found[-1].stop
    return found


def streamed(manifest, rows, dtype="float32", parts=(7,)):
    with create(manifest, {}, MAKING) as root:
        writer = RunWriter(root.create_group("b0"), "activations", rows.shape, encoding=Encoding(dtype))
        for part in cuts(rows.shape[1], list(parts)):
            writer.append(rows[:, part])
        writer.close()
    return manifest


@pytest.fixture
def small(monkeypatch):
    """Chunks of 200 bytes in shards of 2,000, so that few rows make many files."""
    monkeypatch.setattr(grids, "CHUNK_BYTES", 200)
    monkeypatch.setattr(grids, "SHARD_BYTES", 2000)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_streamed_rows_read_back_by_zarr_xarray_and_the_reader(tmp_path, small, dtype):
    rows = RNG.standard_normal((3, 101, 5)).astype(np.float32) * 1e-6
    manifest = streamed(tmp_path / "step1.json", rows, dtype)
    expected = rounded(rows, dtype)
    group = open_store(manifest)["b0"]
    np.testing.assert_array_equal(read_rows(group, "activations"), expected)
    np.testing.assert_array_equal(read_rows(group, "activations", 1), expected[1])
    assert group["activations"].attrs["stored_dtype"] == dtype
    with xr.open_datatree(store_path(manifest), engine="zarr") as tree:
        found = tree["b0"].to_dataset().load()
    assert found["activations"].dims == DIMS
    values = found["activations"].values.astype(np.float32)
    if dtype == "float16":
        assert found["activations_scale"].dims == DIMS[:2]
        values = values * found["activations_scale"].values[..., None]
    np.testing.assert_array_equal(values, expected)
    assert sum("/activations/c/" in name for name in read_manifest(manifest)["files"]) > 1


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_the_largest_error_of_a_row_is_an_attribute(tmp_path, dtype):
    rows = RNG.standard_normal((2, 40, 8)).astype(np.float32)
    rows[:, 3] = 0
    array = open_store(streamed(tmp_path / "s.json", rows, dtype))["b0"]["activations"]
    there = np.any(rows != 0, axis=-1)
    off = np.linalg.norm(rounded(rows, dtype).astype(float) - rows, axis=-1)[there]
    expected = np.max(off / np.linalg.norm(rows.astype(float), axis=-1)[there])
    assert array.attrs["max_relative_error"] == pytest.approx(expected, rel=1e-12)
    assert array.attrs["max_relative_error"] > 1e-5


@settings(max_examples=40)
@given(
    data=st.data(),
    shape=st.tuples(st.integers(1, 4), st.integers(0, 60), st.integers(1, 6)),
    parts=st.lists(st.integers(1, 30), min_size=1, max_size=4),
)
def test_the_bytes_do_not_depend_on_how_the_rows_came(tmp_path_factory, data, shape, parts):
    folder = tmp_path_factory.mktemp("any")
    rows = np.random.default_rng(data.draw(st.integers(0, 9))).standard_normal(shape).astype(np.float32)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grids, "CHUNK_BYTES", data.draw(st.sampled_from([4, 50, 10_000])))
        patch.setattr(grids, "SHARD_BYTES", data.draw(st.sampled_from([60, 700, 10_000])))
        whole = streamed(folder / "whole.json", rows, parts=(100,))
        pieces = streamed(folder / "pieces.json", rows, parts=parts)
    assert whole.read_bytes() == pieces.read_bytes()
    np.testing.assert_array_equal(open_store(pieces)["b0"]["activations"][...], rows)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("grid", [Grid((1, 2, 2, 3), (2, 4, 2, 6)), Grid((2, 1, 1, 4), (2, 3, 1, 4)), None])
def test_any_array_may_grow_along_any_axis(tmp_path, axis, grid):
    values = RNG.standard_normal((3, 5, 4, 6))
    dims = ("group", "quantity", "row", "column")
    with create(tmp_path / "s.json", {}, MAKING) as root:
        known = grid or block_grid(values.shape, 8)
        writer = ShardWriter(root, "x", values.shape, values.dtype, dims, axis=axis, grid=known)
        for part in cuts(values.shape[axis], [1, 2]):
            writer.append(values[(slice(None),) * axis + (part,)])
        writer.close()
    np.testing.assert_array_equal(open_store(tmp_path / "s.json")["x"][...], values)


def test_zeros_are_written_so_that_a_lost_chunk_cannot_pass_for_them(tmp_path):
    manifest = streamed(tmp_path / "s.json", np.zeros((2, 9, 3), np.float32))
    assert "b0/activations/c/0/0/0" in read_manifest(manifest)["files"]
    assert not open_store(manifest)["b0"]["activations"][...].any()


def test_digests_made_while_writing_are_those_of_the_files(tmp_path, small):
    manifest = streamed(tmp_path / "s.json", RNG.standard_normal((2, 90, 4)).astype(np.float32), "float16")
    files = {p.relative_to(store_path(manifest)).as_posix(): p for p in store_path(manifest).rglob("*") if p.is_file()}
    told = read_manifest(manifest)["files"]
    assert set(told) == set(files)
    for name, file in files.items():
        content = file.read_bytes()
        assert told[name] == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def test_memory_does_not_grow_with_the_number_of_tokens(tmp_path):
    batch = RNG.standard_normal((1, 500, 64)).astype(np.float32)

    def peak(batches: int) -> int:
        with create(tmp_path / f"{batches}.json", {}, MAKING) as root:
            writer = RunWriter(root, "x", (1, 500 * batches, 64), encoding=Encoding("float16"))
            tracemalloc.start()
            for _ in range(batches):
                writer.append(batch)
            writer.close()
            found = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        return found

    peak(2)
    # Ten times the tokens, nearly the same length of chunk; all stored entries together are 122 MB.
    assert peak(1900) < 1.1 * peak(190)


@pytest.mark.parametrize("tokens", [3, 8])
def test_fewer_or_more_tokens_than_promised_are_refused_and_leave_no_store(tmp_path, tokens):
    rows = np.ones((2, tokens, 3), np.float32)
    said = "x: 3 of 5 entries" if tokens == 3 else r"x: \(2, 8, 3\) came after 0 of 5"
    with pytest.raises(DataError, match=said), create(tmp_path / "s.json", {}, MAKING) as root:  # noqa: PT012
        writer = RunWriter(root, "x", (2, 5, 3), encoding=Encoding())
        writer.append(rows)
        writer.close()
    assert not any(p.is_file() for p in tmp_path.rglob("*"))


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_rows_that_are_not_finite_stop_before_they_are_written(tmp_path, dtype, bad):
    rows = np.ones((2, 5, 3), np.float32)
    rows[1, 2, 0] = bad
    with pytest.raises(DataError, match="x: not finite"), create(tmp_path / "s.json", {}, MAKING) as root:
        RunWriter(root, "x", (2, 5, 3), encoding=Encoding(dtype)).append(rows)


def test_large_finite_rows_are_no_overflow(tmp_path):
    rows = np.full((1, 4, 100), 3e38, np.float32)
    manifest = streamed(tmp_path / "s.json", rows)
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], rows)


def test_plain_zarr_checks_the_index(tmp_path):
    manifest = streamed(tmp_path / "s.json", RNG.standard_normal((2, 9, 3)).astype(np.float32))
    shard = store_path(manifest) / "b0" / "activations" / "c" / "0" / "0" / "0"
    content = bytearray(shard.read_bytes())
    content[-6] ^= 1
    shard.write_bytes(content)
    with pytest.raises(ValueError, match="checksum"):
        zarr.open_group(store_path(manifest), mode="r")["b0"]["activations"][...]


sizes = {
    "sites": st.integers(1, 130),
    "tokens": st.integers(0, 3_000_000),
    "width": st.integers(1, 16_384),
    "itemsize": st.sampled_from([2, 4, 8]),
}


@given(**sizes)
def test_a_chunk_is_one_site_and_a_shard_whole_chunks_of_bounded_size(sites, tokens, width, itemsize):
    shape, row = (sites, tokens, width), width * itemsize
    for grid in (run_grid(shape, itemsize), block_grid(shape, itemsize)):
        assert grid.chunk[0] == 1
        assert grid.chunk[2] == grid.shard[2] == width
        assert all(s % c == 0 and c >= 1 for s, c in zip(grid.shard, grid.chunk, strict=True))
        assert grid.chunk[1] * row <= CHUNK_BYTES
        assert np.prod(grid.shard) * itemsize <= SHARD_BYTES
        data = sites * max(tokens, 1) * row
        # Equal parts: at most twice the files that the bytes alone would need.
        assert grid.files(shape) <= 2 * data / SHARD_BYTES + sites


@given(shape=st.lists(st.integers(0, 400), min_size=1, max_size=5).map(tuple), itemsize=st.sampled_from([1, 4, 8]))
def test_blocks_of_any_shape_keep_to_the_limits(shape, itemsize):
    grid = block_grid(shape, itemsize)
    assert all(s % c == 0 and c >= 1 for s, c in zip(grid.shard, grid.chunk, strict=True))
    assert np.prod(grid.chunk) * itemsize <= CHUNK_BYTES
    assert np.prod(grid.shard) * itemsize <= SHARD_BYTES
    assert len(shape) < 3 or grid.chunk[0] == 1
