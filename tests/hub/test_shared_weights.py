"""One folder of downloads for many studies: fetched once, checked by each, and nobody's to change."""

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from hub_server import Fault
from isotrace.errors import DataError
from isotrace.hub.prefetch import prefetch
from isotrace.locks import alone

WEIGHTS = "model.safetensors"


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o2775)
    return folder


def fetched(study: Path, download: dict[str, Any], shared: Path) -> Path:
    folder = study / "results" / "weights" / "decoder" / "step8"
    prefetch(download, folder, "decoder", shared=shared, pause=0.01)
    return folder


def kept(shared: Path, download: dict[str, Any]) -> Path:
    return shared / "org--tiny" / download["commit"] / WEIGHTS


def test_a_second_study_downloads_nothing_and_has_the_same_files(hub, download, shared, tmp_path):
    folders = [fetched(tmp_path / name, download, shared) for name in ("one", "two")]
    assert hub.asked("GET", "/lfs/") == 1
    assert hub.asked("GET", "config.json") == 1
    for folder in folders:
        assert sorted(file.name for file in folder.iterdir()) == ["config.json", WEIGHTS, "prefetch.json"]
        assert os.path.samefile(folder / WEIGHTS, kept(shared, download))
    assert (folders[0] / "prefetch.json").read_bytes() == (folders[1] / "prefetch.json").read_bytes()
    assert not kept(shared, download).stat().st_mode & 0o222
    assert [p for p in shared.rglob("*") if p.name.endswith((".lock", ".part"))] == []


def test_folders_below_take_the_mode_of_the_common_one(download, shared, tmp_path):
    fetched(tmp_path / "one", download, shared)
    assert kept(shared, download).parent.stat().st_mode & 0o7777 == 0o2775


def test_weights_that_one_study_removes_stay_for_the_others(hub, download, shared, tmp_path):
    one, two = (fetched(tmp_path / name, download, shared) for name in ("one", "two"))
    for file in one.iterdir():
        file.unlink()
    assert (two / WEIGHTS).stat().st_size == 40_000
    fetched(tmp_path / "one", download, shared)
    assert hub.asked("GET", "/lfs/") == 1


def test_a_file_that_was_damaged_is_fetched_again(hub, download, shared, tmp_path):
    kept(shared, download).parent.mkdir(parents=True)
    kept(shared, download).write_bytes(bytes(40_000))
    folder = fetched(tmp_path / "one", download, shared)
    assert hub.asked("GET", "/lfs/") == 1
    assert (folder / WEIGHTS).read_bytes() == (hub.repos["org/tiny"]["step8"] / WEIGHTS).read_bytes()


def test_what_does_not_arrive_whole_never_gets_into_the_common_folder(hub, download, shared, tmp_path):
    hub.faults = [Fault("GET", "/lfs/", "other")]
    with pytest.raises(DataError, match="not the file that the series file lists"):
        fetched(tmp_path / "one", download, shared)
    assert not kept(shared, download).exists()
    fetched(tmp_path / "two", download, shared)
    assert kept(shared, download).is_file()


def test_many_at_once_download_once(hub, download, shared, tmp_path):
    threads = [threading.Thread(target=fetched, args=(tmp_path / f"study{i}", download, shared)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert hub.asked("GET", "/lfs/") == 1
    assert sum(os.path.samefile(p, kept(shared, download)) for p in tmp_path.glob(f"study*/**/{WEIGHTS}")) == 4


def test_a_study_waits_for_the_one_that_fetches(hub, download, shared, tmp_path):
    done = threading.Event()

    def second() -> None:
        fetched(tmp_path / "two", download, shared)
        done.set()

    kept(shared, download).parent.mkdir(parents=True)
    with alone(kept(shared, download)):
        thread = threading.Thread(target=second)
        thread.start()
        assert not done.wait(0.3)
    thread.join()
    assert done.is_set()


def test_across_file_systems_the_file_is_linked_by_name(hub, download, tmp_path):
    """/dev/shm is another file system than the one of this test, if the machine has it."""
    away = Path("/dev/shm") / tmp_path.name
    if not Path("/dev/shm").is_dir() or os.stat("/dev/shm").st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("no second file system here")
    away.mkdir()
    try:
        folder = fetched(tmp_path / "one", download, away)
        assert (folder / WEIGHTS).is_symlink()
        assert (folder / WEIGHTS).stat().st_size == 40_000
        assert not kept(away, download).is_symlink()
    finally:
        for path in sorted(away.rglob("*"), reverse=True):
            path.unlink() if path.is_file() else path.rmdir()
        away.rmdir()
