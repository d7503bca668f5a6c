"""Sealed stores: exact round trips, openings as outside tools do them, and what is no store any more."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isotrace.capture.writer import COORDINATES, Captured, write_cache, write_moments
from isotrace.cli import main
from isotrace.errors import DataError
from isotrace.store import (
    _CHUNK_BYTES,
    _SHARD_BYTES,
    _grid,
    create,
    differences,
    is_tombstone,
    open_store,
    put,
    read_manifest,
    seal,
    store_path,
)

MAKING = {"params_digest": "p", "code_digest": "c", "versions": {}}
ROWS = np.arange(2 * 5 * 3, dtype=np.float32).reshape(2, 5, 3)


def write(manifest: Path, rows: np.ndarray = ROWS, attributes: dict | None = None, groups=("b0", "b1")) -> Path:
    with create(manifest, attributes or {}, MAKING) as root:
        for name in groups:
            group = root.create_group(name)
            put(group, "site", np.array(["embed", "block.0"]), ("site",))
            put(group, "token_id", np.arange(rows.shape[1], dtype=np.int32), ("token",), units="tokens")
            put(group, "activations", rows, ("site", "token", "feature"), coordinates="token_id")
    return manifest


def test_what_was_put_comes_back_by_xarray_and_by_plain_zarr(tmp_path):
    store = store_path(write(tmp_path / "step8.json", attributes={"model": "m", "step": 8, "tokens_seen": None}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with xr.open_datatree(store, engine="zarr") as tree:
            bucket = tree["b1"].to_dataset().load()
            assert tree.attrs == {"model": "m", "step": 8, "tokens_seen": None}
        plain = zarr.open_group(store, mode="r")
    np.testing.assert_array_equal(bucket["activations"].values, ROWS)
    assert bucket["activations"].dims == ("site", "token", "feature")
    assert bucket["activations"].dtype == np.float32
    assert list(bucket["site"].values) == ["embed", "block.0"]
    assert bucket["token_id"].attrs["units"] == "tokens"
    assert "token_id" in bucket.coords
    np.testing.assert_array_equal(plain["b0"]["activations"][...], ROWS)
    assert plain.metadata.zarr_format == 3


shapes = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=7)
dtypes = st.sampled_from(["float32", "float64", "int32", "int64", "int16", "int8", "bool"])


@settings(deadline=None, max_examples=60)
@given(data=st.data(), shape=shapes, dtype=dtypes)
def test_any_array_comes_back_to_the_bit(tmp_path_factory, data, shape, dtype):
    values = data.draw(hnp.arrays(dtype, shape))
    manifest = tmp_path_factory.mktemp("any") / "s.json"
    dims = tuple(f"d{i}" for i in range(len(shape)))
    with create(manifest, {}, MAKING) as root:
        put(root, "x", values, dims)
    found = open_store(manifest)["x"]
    assert found[...].tobytes() == values.tobytes()
    assert found.shape == shape
    assert found.metadata.dimension_names == dims


class Shaped:
    """As much of an array as ``_grid`` looks at, without its memory."""

    def __init__(self, shape, itemsize=4):
        self.shape, self.ndim, self.itemsize = shape, len(shape), itemsize


@given(
    sites=st.integers(1, 40),
    tokens=st.integers(0, 300_000),
    width=st.integers(1, 5000),
    itemsize=st.sampled_from([4, 8]),
)
def test_a_chunk_is_one_site_and_a_shard_whole_chunks_of_bounded_size(sites, tokens, width, itemsize):
    shard, chunk = _grid(Shaped((sites, tokens, width), itemsize))
    assert chunk[0] == 1
    assert chunk[2] == shard[2] == width
    assert all(s % c == 0 and c >= 1 for s, c in zip(shard, chunk, strict=True))
    row = width * itemsize
    assert chunk[1] * row <= max(_CHUNK_BYTES, row)
    assert np.prod(shard) * itemsize <= max(_SHARD_BYTES, chunk[1] * row)
    assert shard[0] <= sites


def test_one_site_can_be_read_without_the_others(tmp_path):
    rows = np.random.default_rng(0).standard_normal((4, 300, 8)).astype(np.float32)
    array = open_store(write(tmp_path / "s.json", rows))["b0"]["activations"]
    assert array.chunks == (1, 300, 8)
    assert array.shards == (4, 300, 8)
    np.testing.assert_array_equal(array[2], rows[2])


def test_a_checkpoint_of_ordinary_size_takes_few_files(tmp_path):
    """Seven sites, four buckets, 1,500 rows each: a file system of a cluster counts files."""
    n, sites = 6000, tuple(f"block.{i}" for i in range(7))
    rows = np.random.default_rng(0).standard_normal((7, n, 16)).astype(np.float32)
    captured = Captured(sites, rows, rows, rows[0, :, 0])
    sample = {name: np.ones(n, np.int32) for name in COORDINATES} | {"split": np.arange(n) % 2}
    bucket = np.arange(n) % 4
    with (
        create(tmp_path / "cache.json", {}, MAKING) as cache,
        create(tmp_path / "moments.json", {}, MAKING) as moments,
    ):
        for i in range(4):
            write_cache(cache.create_group(f"b{i}"), captured, bucket == i, sample)
            write_moments(moments.create_group(f"b{i}"), captured, bucket == i, sample["split"])
    files = [len(read_manifest(tmp_path / f"{name}.json")["files"]) for name in ("cache", "moments")]
    assert sum(files) <= 200


def test_names_may_be_long_and_in_any_script(tmp_path):
    name = "模型-é" * 20
    folder = tmp_path / ("ключ" * 20)
    attributes = {"model": name, "reason": "naïve \N{SNOWMAN}"}
    with create(folder / "step1.json", attributes, MAKING) as root:
        put(root.create_group("b0"), "site", np.array([name, ""]), ("site",))
    assert open_store(folder / "step1.json").attrs["model"] == name
    assert list(open_store(folder / "step1.json")["b0"]["site"][...]) == [name, ""]
    assert name in (folder / "step1.json").read_text(encoding="utf-8")
    assert main(["verify", str(tmp_path)]) == 0


def test_arrays_of_zeros_are_sealed_like_others(tmp_path, capsys):
    manifest = write(tmp_path / "s.json", np.zeros_like(ROWS))
    assert differences(manifest, read_manifest(manifest)) == []
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], 0)
    assert main(["verify", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 stores, 0 differ from their manifest\n"


def lose(store: Path) -> None:
    (store / "b0" / "activations" / "c" / "0" / "0" / "0").unlink()


def change(store: Path) -> None:
    file = store / "b0" / "activations" / "c" / "0" / "0" / "0"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def grow(store: Path) -> None:
    with (store / "zarr.json").open("a") as stream:
        stream.write(" ")


def add(store: Path) -> None:
    (store / "b1" / "notes.txt").write_text("mine")


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lose, "b0/activations/c/0/0/0 is lost"),
        (change, "b0/activations/c/0/0/0 changed"),
        (grow, "zarr.json changed its size"),
        (add, "b1/notes.txt is not in the manifest"),
    ],
)
def test_a_damaged_store_is_named_and_refused(tmp_path, capsys, damage, said):
    good, bad = write(tmp_path / "m" / "step0.json"), write(tmp_path / "m" / "step8.json")
    damage(store_path(bad))
    assert main(["verify", str(tmp_path)]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out == [f"{bad.with_suffix('')}: {said}", "2 stores, 1 differ from their manifest"]
    assert main(["verify", str(good)]) == 0
    with pytest.raises(DataError, match=said) as caught:
        open_store(bad)
    assert "\n" not in str(caught.value)
    assert f"remove {bad}" in str(caught.value)


def test_only_the_buckets_that_are_read_are_digested(tmp_path):
    manifest = write(tmp_path / "s.json")
    change(store_path(manifest))
    assert "b1" in open_store(manifest, ("b1",))
    with pytest.raises(DataError, match="changed"):
        open_store(manifest, ("b0",))


def test_a_store_without_its_folder_is_named_by_verify(tmp_path, capsys):
    manifest = write(tmp_path / "s.json")
    shutil.rmtree(manifest.with_suffix(""))
    assert main(["verify", str(manifest)]) == 1
    assert "zarr.json is lost" in capsys.readouterr().out


def test_verifying_what_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["verify", str(tmp_path / "none")]) == 1
    assert capsys.readouterr().err == f"isotrace: error: {tmp_path}/none: no such store or folder\n"


def test_another_schema_and_a_torn_manifest_are_one_line(tmp_path, capsys):
    manifest = write(tmp_path / "s.json")
    content = json.loads(manifest.read_text()) | {"schema_version": 0}
    manifest.write_text(json.dumps(content))
    with pytest.raises(DataError, match="schema version 0, this isotrace reads 1; remove the store and rerun"):
        open_store(manifest)
    assert main(["verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    manifest.write_text('{"schema_version": 1, "files"')
    with pytest.raises(DataError, match="not a sealed store"):
        open_store(manifest)
    assert main(["verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(DataError, match="not a sealed store"):
        open_store(tmp_path / "none.json")


def test_a_tombstone_is_sealed_and_says_why(tmp_path):
    manifest = tmp_path / "s.json"
    seal(manifest, attributes={}, fingerprint=MAKING, files={}, reason="weights are truncated")
    assert is_tombstone(manifest)
    with pytest.raises(DataError, match=r"empty by design \(weights are truncated\)"):
        open_store(manifest)
    assert main(["verify", str(tmp_path)]) == 0


def test_a_failed_body_leaves_nothing_and_the_old_store_does_not_count(tmp_path):
    manifest = write(tmp_path / "s.json")
    with pytest.raises(RuntimeError), create(manifest, {}, MAKING) as root:  # noqa: PT012
        put(root, "x", ROWS, ("a", "b", "c"))
        raise RuntimeError
    assert not manifest.exists()
    assert list(tmp_path.rglob("*.part")) == []


def test_writing_again_replaces_what_was_there(tmp_path):
    manifest = write(tmp_path / "s.json", ROWS)
    write(manifest, ROWS + 1, groups=("b0",))
    assert list(open_store(manifest).group_keys()) == ["b0"]
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], ROWS + 1)


def test_the_same_content_is_the_same_bytes(tmp_path):
    first, second = write(tmp_path / "a.json"), write(tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()


WRITE_FOR_EVER = """
import sys
from pathlib import Path
import numpy as np
from isotrace.store import create, put
rows = np.random.default_rng(0).standard_normal((3, 2000, 16)).astype("f4")
making = {"params_digest": "", "code_digest": "", "versions": {}}
print("ready", flush=True)
while True:
    with create(Path(sys.argv[1]), {}, making) as root:
        for name in ("b0", "b1"):
            put(root.create_group(name), "activations", rows, ("site", "token", "feature"))
"""


@pytest.mark.parametrize("delay", [0.0, 0.013, 0.027, 0.041, 0.058])
def test_a_killed_writer_leaves_a_whole_store_or_none(tmp_path, delay):
    manifest = tmp_path / "step0.json"
    process = subprocess.Popen([sys.executable, "-c", WRITE_FOR_EVER, str(manifest)], stdout=subprocess.PIPE)
    process.stdout.readline()
    while not manifest.exists():
        time.sleep(0.001)
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    if manifest.exists():
        content = read_manifest(manifest)
        assert differences(manifest, content) == []
        assert {"b0/activations/zarr.json", "b1/activations/zarr.json"} <= set(content["files"])
    else:
        with pytest.raises(DataError, match="not a sealed store"):
            open_store(manifest)
    write(manifest)
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], ROWS)


READ_ONLY = """
import os, sys
from pathlib import Path
from types import SimpleNamespace
from isotrace.job import job
from isotrace.store import create
if os.geteuid() == 0:
    os.setuid(65534)  # root may write anywhere
snakemake = SimpleNamespace(params=SimpleNamespace(spec={"threads": 1}), log=[sys.argv[2]])
with job(snakemake), create(Path(sys.argv[1]), {}, {}):
    pass
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that any user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_a_folder_that_cannot_be_written_is_one_line(open_folder):
    closed = open_folder / "closed"
    closed.mkdir(mode=0o555)
    command = [sys.executable, "-c", READ_ONLY, str(closed / "m" / "step0.json"), str(open_folder / "x.log")]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 1
    assert result.stderr.startswith(f"isotrace: error: {closed}/m")
    assert "Permission denied; free space or choose another folder" in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(closed.iterdir()) == []
