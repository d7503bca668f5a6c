"""Two attempts at one store: only the one that began last may seal it, whatever the other still does."""

import fcntl
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isotrace.encoding import Encoding
from isotrace.errors import DataError
from isotrace.locks import alone
from isotrace.ownership import claim
from isotrace.shards import RunWriter
from isotrace.store import create, differences, open_store, put, read_manifest, seal_empty
from sealed import MAKING, ROWS, write

TOOK_OVER = "another run of this job took over; what this one wrote is dropped"


def names(folder: Path) -> set[str]:
    """Everything in a folder but the files of its stores."""
    return {p.relative_to(folder).as_posix() for p in folder.rglob("*") if "store.zarr/" not in p.as_posix()}


@pytest.mark.parametrize("late", ["put", "append", "nothing"])
def test_an_orphan_that_writes_on_loses_and_touches_nothing(tmp_path, late):
    manifest = tmp_path / "step1.json"
    with pytest.raises(DataError, match=TOOK_OVER) as caught, create(manifest, {"of": "orphan"}, MAKING) as root:  # noqa: PT012
        put(root, "x", ROWS, ("a", "b", "c"))
        writer = RunWriter(root, "y", (1, 4, 2), encoding=Encoding())
        write(manifest, ROWS + 1)
        sealed = manifest.read_bytes()
        if late == "put":
            put(root, "z", ROWS, ("a", "b", "c"))
        elif late == "append":
            writer.append(np.ones((1, 4, 2), np.float32))
            writer.close()
    assert "\n" not in str(caught.value)
    assert manifest.read_bytes() == sealed
    assert differences(manifest, read_manifest(manifest)) == []
    np.testing.assert_array_equal(open_store(manifest)["b0"]["activations"][...], ROWS + 1)
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr"}


def test_an_orphan_that_ends_first_loses_to_the_attempt_that_still_writes(tmp_path):
    manifest = tmp_path / "step1.json"
    orphan = create(manifest, {"of": "orphan"}, MAKING)
    root = orphan.__enter__()
    with create(manifest, {"of": "heir"}, MAKING) as heir:
        put(heir, "x", ROWS, ("a", "b", "c"))
        with pytest.raises(DataError, match=TOOK_OVER):
            orphan.__exit__(None, None, None)
        assert not manifest.exists()
        put(heir, "y", ROWS, ("a", "b", "c"))
    assert root.attrs["of"] == "orphan"
    assert open_store(manifest).attrs["of"] == "heir"
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr"}


def test_an_orphan_whose_folder_snakemake_removed_seals_nothing(tmp_path):
    """Before it reruns a job, Snakemake removes its outputs: the manifest and the folder with the attempt in it."""
    manifest = tmp_path / "step1.json"
    with pytest.raises(DataError, match=TOOK_OVER), create(manifest, {}, MAKING) as root:  # noqa: PT012
        shutil.rmtree(manifest.with_suffix(""))
        put(root, "x", ROWS, ("a", "b", "c"))
    assert not any(p.is_file() for p in tmp_path.rglob("*"))


def test_an_orphan_loses_to_a_tombstone(tmp_path):
    manifest = tmp_path / "step1.json"
    with pytest.raises(DataError, match=TOOK_OVER), create(manifest, {}, MAKING):
        seal_empty(manifest, attributes={}, fingerprint=MAKING, reason="weights are truncated")
    assert read_manifest(manifest)["reason"] == "weights are truncated"
    assert names(tmp_path) == {"step1", "step1.json"}


@pytest.mark.parametrize("moment", ["while the heir writes", "after it sealed"])
def test_an_orphan_that_claimed_before_and_writes_later_loses(tmp_path, moment):
    """A slow job: it began before its heir, and comes to its store after it."""
    manifest = tmp_path / "step1.json"
    with claim(manifest) as (slow,):
        assert not manifest.exists()
        with create(manifest, {"of": "heir"}, MAKING) as root:
            put(root, "x", ROWS, ("a", "b", "c"))
            if moment == "while the heir writes":
                with pytest.raises(DataError, match=TOOK_OVER), create(slow, {}, MAKING):
                    pytest.fail("the orphan wrote")
        if moment == "after it sealed":
            with pytest.raises(DataError, match=TOOK_OVER), create(slow, {}, MAKING):
                pytest.fail("the orphan wrote")
            with pytest.raises(DataError, match=TOOK_OVER):
                seal_empty(slow, attributes={}, fingerprint=MAKING, reason="no attention")
    assert open_store(manifest).attrs["of"] == "heir"
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr"}


def test_claimed_stores_are_written_in_their_turn_and_nothing_is_left_of_the_rest(tmp_path):
    manifests = [tmp_path / f"step{i}.json" for i in range(3)]
    with pytest.raises(ZeroDivisionError), claim(*manifests) as (first, second, _):  # noqa: PT012
        with create(first, {}, MAKING) as root:
            put(root, "x", ROWS, ("a", "b", "c"))
        seal_empty(second, attributes={}, fingerprint=MAKING, reason="no attention")
        raise ZeroDivisionError
    assert open_store(manifests[0])
    assert read_manifest(manifests[1])["status"] == "tombstone"
    assert names(tmp_path) == {"step0", "step0.json", "step0/store.zarr", "step1", "step1.json", "step2"}


def test_what_killed_attempts_left_is_removed_by_the_next(tmp_path):
    manifest = tmp_path / "step1.json"
    for file in ("step1/store.zarr.host.1.ab.part/b0/zarr.json", "step1/.owner", ".step1.json.lock"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("left")
    (tmp_path / "step1.json.ab.part").write_text("left")
    (tmp_path / "step10.json.ab.part").write_text("of another store")
    write(manifest)
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr", "step10.json.ab.part"}


def test_a_store_never_stands_beside_the_manifest_of_another(tmp_path):
    manifest = write(tmp_path / "step1.json")
    with create(manifest, {}, MAKING) as root:
        assert not manifest.exists()
        put(root, "x", ROWS, ("a", "b", "c"))
    assert set(dict(open_store(manifest).arrays())) == {"x"}


def _holding(file: Path, taken: "multiprocessing.synchronize.Event", go: "multiprocessing.synchronize.Event") -> None:
    with alone(file):
        taken.set()
        go.wait()


def test_sealing_waits_for_whoever_holds_the_lock(tmp_path):
    manifest = tmp_path / "step1.json"
    context = multiprocessing.get_context("spawn")
    taken, go = context.Event(), context.Event()
    holder = context.Process(target=_holding, args=(manifest, taken, go))
    holder.start()
    taken.wait()
    with (tmp_path / ".step1.json.lock").open("r+") as stream, pytest.raises(BlockingIOError):
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    go.set()
    write(manifest)
    holder.join()
    assert open_store(manifest)


def test_without_locks_a_store_is_written_all_the_same(tmp_path, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", refuse)
    assert open_store(write(tmp_path / "step1.json"))
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr"}


RACE = """
import sys
from pathlib import Path
import numpy as np
from isotrace.errors import DataError
from isotrace.ownership import claim
from isotrace.store import create, put
manifest, me = Path(sys.argv[1]), int(sys.argv[2])
making = {"params_digest": "", "code_digest": "", "versions": {}}
sys.stdin.readline()
for _ in range(15):
    try:
        with create(manifest, {"of": me}, making) as root:
            put(root, "x", np.full(100, me), ("token",))
    except DataError as error:
        assert "took over" in str(error), error
"""


def test_many_writers_at_once_leave_one_whole_store(tmp_path):
    manifest = tmp_path / "step1.json"
    racers = [
        subprocess.Popen([sys.executable, "-c", RACE, str(manifest), str(i)], stdin=subprocess.PIPE) for i in range(3)
    ]
    for racer in racers:
        racer.stdin.write(b"go\n")
        racer.stdin.close()
    assert [racer.wait() for racer in racers] == [0, 0, 0]
    content = read_manifest(manifest)
    assert differences(manifest, content) == []
    assert set(open_store(manifest)["x"][...]) == {content["attributes"]["of"]}
    assert names(tmp_path) == {"step1", "step1.json", "step1/store.zarr"}


def test_a_disk_that_fills_up_leaves_nothing(tmp_path):
    """/dev/full is always full; the error is the system's, which a job says in one line."""
    with pytest.raises(OSError, match="No space left on device"), create(tmp_path / "s.json", {}, MAKING) as root:  # noqa: PT012
        writer = RunWriter(root, "x", (1, 4, 2), encoding=Encoding())
        shard = root.store.root / "x" / "c" / "0" / "0" / "0"
        shard.parent.mkdir(parents=True)
        shard.symlink_to("/dev/full")
        writer.append(np.ones((1, 4, 2), np.float32))
    assert not any(p.is_file() for p in tmp_path.rglob("*"))


@pytest.mark.parametrize(("damage", "said"), [("shorten", "shorter or longer"), ("remove", "gone since")])
def test_a_disk_that_loses_bytes_is_found_when_sealing(tmp_path, damage, said):
    with pytest.raises(DataError, match=said), create(tmp_path / "s.json", {}, MAKING) as root:  # noqa: PT012
        writer = RunWriter(root, "x", (1, 4, 2), encoding=Encoding())
        writer.append(np.ones((1, 4, 2), np.float32))
        writer.close()
        shard = root.store.root / "x" / "c" / "0" / "0" / "0"
        if damage == "remove":
            shard.unlink()
        else:
            shard.write_bytes(shard.read_bytes()[:-1])
    assert not (tmp_path / "s.json").exists()
