"""Downloads from a hub on loopback: checked, resumed, patient, and never through a shared cache."""

import hashlib
import json
import os
import threading
import time

import pytest

from hub_server import Fault
from isotrace.errors import DataError
from isotrace.hub.prefetch import prefetch, prefetch_beside
from isotrace.hub.slots import slot


@pytest.fixture
def fetched(tmp_path, download):
    """Prefetch into the results folder of this test; the checkpoint's folder."""
    folder = tmp_path / "results" / "weights" / "decoder" / "step8"

    def run(**changes):
        prefetch(download | changes, folder, "decoder", pause=0.01)
        return folder

    return run


def test_files_are_those_of_the_commit_and_the_manifest_says_what_they_are(hub, fetched, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    folder = fetched()
    source = hub.repos["org/tiny"]["step8"]
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "model.safetensors", "prefetch.json"]
    assert (folder / "model.safetensors").read_bytes() == (source / "model.safetensors").read_bytes()
    manifest = json.loads((folder / "prefetch.json").read_text())
    assert manifest["commit"] == hub.commit("org/tiny", "step8")
    digest = hashlib.sha256((source / "config.json").read_bytes()).hexdigest()
    assert manifest["files"]["config.json"] == {"bytes": (source / "config.json").stat().st_size, "sha256": digest}
    assert not (tmp_path / "home").exists()
    assert list((folder.parent / ".prefetch").iterdir()) == []
    assert "HF_XET_CACHE" not in os.environ


def test_a_subfolder_is_left_behind(hub, fetched, download):
    inner = hub.repos["org/tiny"]["step8"] / "hf"
    inner.mkdir()
    for name in download["files"]:
        (inner.parent / name).rename(inner / name)
    assert (fetched(subfolder="hf") / "model.safetensors").is_file()


@pytest.mark.parametrize(
    "fault",
    [
        Fault("HEAD", "safetensors", 429, headers={"Retry-After": "0"}),
        Fault("HEAD", "safetensors", 500),
        Fault("GET", "/lfs/", 503, times=2),
        Fault("GET", "config.json", 500),
    ],
    ids=["429", "500 before", "503 twice", "500 of a small file"],
)
def test_a_busy_or_failing_server_is_waited_for(hub, fetched, fault):
    hub.faults = [fault]
    assert (fetched() / "model.safetensors").stat().st_size == 40_000
    assert fault.times == 0


def test_a_download_that_is_cut_goes_on_where_it_stopped(hub, fetched, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)  # what is less is not written yet
    hub.faults = [Fault("GET", "/lfs/", "cut")]
    folder = fetched()
    ranges = [at for method, path, _, at in hub.requests if method == "GET" and "/lfs/" in path]
    assert ranges == ["", "bytes=20000-"]
    assert (folder / "model.safetensors").stat().st_size == 40_000


def test_other_bytes_are_refused_and_fetched_again_by_a_rerun(hub, fetched):
    hub.faults = [Fault("GET", "/lfs/", "other")]
    with pytest.raises(DataError, match=r"model.safetensors at .*not the file that the series file lists \(sha256"):
        fetched()
    assert (fetched() / "model.safetensors").is_file()


def test_another_size_than_listed_is_refused(fetched, download):
    files = download["files"] | {"config.json": {"bytes": 5, "sha256": None}}
    with pytest.raises(DataError, match=r"config.json.*bytes, 5 listed"):
        fetched(files=files)


def test_a_rerun_fetches_only_what_is_not_there(hub, fetched):
    """The first attempt has the small file and fails at the weights, as a killed one would."""
    hub.faults = [Fault("GET", "/lfs/", 404)]
    with pytest.raises(DataError, match=r"hub: org/tiny model.safetensors .*not there \(404\)"):
        fetched()
    assert hub.asked("GET", "config.json") == 1
    fetched()
    assert hub.asked("GET", "config.json") == 1


def test_a_gated_file_is_one_line(hub, fetched):
    hub.gated = {"org/tiny"}
    with pytest.raises(DataError, match=r"gated \(401\); accept its terms") as caught:
        fetched()
    assert "\n" not in str(caught.value)


def test_a_token_opens_a_gated_repo_and_never_reaches_the_storage_host(hub, fetched, monkeypatch):
    hub.gated = {"org/tiny"}
    monkeypatch.setenv("HF_TOKEN", "hf_made_up")
    fetched()
    assert {token for _, path, token, _ in hub.requests if "/resolve/" in path} == {True}
    assert {token for _, path, token, _ in hub.requests if "/lfs/" in path} == {False}


def test_an_unresolved_checkpoint_names_the_command(hub, fetched):
    with pytest.raises(DataError, match=r"step8: no commit in the series file yet; .* isotrace resolve decoder "):
        fetched(commit=None)
    assert hub.requests == []


def test_too_small_a_disk_is_told_before_any_download(hub, fetched, download):
    files = download["files"] | {"model.safetensors": {"bytes": 10**18, "sha256": None}}
    with pytest.raises(DataError, match=r"1000000000.00 GB to fetch, .* GB free; .*clean: after_capture"):
        fetched(files=files)
    assert hub.requests == []


def test_the_tokenizer_comes_with_the_config_of_a_checkpoint(hub, download, tmp_path):
    words = {"repo": "org/words", "revision": "main", "commit": hub.commit("org/words", "main"), "subfolder": None}
    words["files"] = {"tokenizer.json": {"bytes": 2, "sha256": None}}
    config = download | {"files": {"config.json": download["files"]["config.json"]}}
    folder = tmp_path / "results" / "weights" / "decoder" / "tokenizer"
    prefetch_beside([words, config], folder, "decoder")
    assert sorted(file.name for file in folder.iterdir()) == ["config.json", "prefetch.json", "tokenizer.json"]


def test_slots_bound_what_goes_on_at_a_time(tmp_path):
    now, most, lock = [0], [0], threading.Lock()

    def work():
        with slot(tmp_path / "slots", 2):
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.05)
            with lock:
                now[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 2
