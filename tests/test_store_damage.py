"""Stores that are damaged, killed while written, or not writable: never taken for whole, always told in one line."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from isotrace.cli import main
from isotrace.errors import DataError
from isotrace.store import create, differences, is_tombstone, open_store, put, read_manifest, seal_empty, store_path
from sealed import MAKING, ROWS, write


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
    content = json.loads(manifest.read_text()) | {"schema_version": 1}
    manifest.write_text(json.dumps(content))
    with pytest.raises(DataError, match="schema version 1, this isotrace reads 2; remove the store and rerun"):
        open_store(manifest)
    assert main(["verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    manifest.write_text('{"schema_version": 2, "files"')
    with pytest.raises(DataError, match="not a sealed store"):
        open_store(manifest)
    assert main(["verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(DataError, match="not a sealed store"):
        open_store(tmp_path / "none.json")


def test_a_tombstone_is_sealed_and_says_why(tmp_path):
    manifest = tmp_path / "s.json"
    write(manifest)
    seal_empty(manifest, attributes={}, fingerprint=MAKING, reason="weights are truncated")
    assert is_tombstone(manifest)
    assert not store_path(manifest).exists()
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
params = SimpleNamespace(spec={"threads": 1})
snakemake = SimpleNamespace(params=params, log=[sys.argv[2]], output=[sys.argv[1]])
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
