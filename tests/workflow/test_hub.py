"""A series on a hub from its labels to sealed rows: resolved once, fetched by local jobs, all else offline."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess

import pytest
import yaml
from running import Study

from hub_server import Hub, serving
from own_code import give_code, name_code

Refused = Callable[[CompletedProcess[str]], str]
IDS = ("step0", "step3", "step10")
ROWS = [f"results/cache/decoder/{name}.json" for name in IDS]
LOCK = "results/checkpoints/decoder.lock.json"


@pytest.fixture
def hub(smoke: Study, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """The decoder that the smoke study trained, as revisions of one repo; its tokenizer in another."""
    weights = smoke.at("weights/decoder")
    revisions = {name: weights / name.replace("step", "checkpoint-") for name in IDS}
    with serving(Hub({"org/tiny": revisions, "org/words": {"main": weights / "tokenizer"}})) as found:
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        yield found


@pytest.fixture
def remote(fresh: Study, hub: Hub) -> Study:
    """The smoke study with that repo as its only model, weights removed once captured."""
    raw = yaml.safe_load(fresh.config.read_text())
    del raw["models"]["encoder"]
    raw["models"]["decoder"]["source"] = {
        "kind": "hub",
        "repo": "org/tiny",
        "tokenizer": {"repo": "org/words"},
        "clean": "after_capture",
    }
    return fresh.written(raw)


def isotrace(study: Study, *arguments: str) -> CompletedProcess[str]:
    command = [sys.executable, "-m", "isotrace", *arguments, "--configfile", str(study.config)]
    return subprocess.run(command, cwd=study.folder, env=study.environment(), capture_output=True, text=True)


def test_a_series_that_is_not_resolved_names_the_command(remote: Study, refused: Refused):
    line = refused(remote.snakemake("--dry-run"))
    assert line.endswith(
        "no file config/series/decoder.json; where there is a network, run: isotrace resolve decoder --configfile FILE"
    )


@pytest.mark.slow
def test_from_labels_to_rows_with_weights_that_come_and_go(remote: Study, smoke: Study, hub: Hub):
    resolved = isotrace(remote, "resolve", "decoder")
    assert resolved.returncode == 0, resolved.stderr
    asked = len(hub.requests)
    assert remote.planned(*ROWS, LOCK)["prefetch_and_clean"] == 3
    assert len(hub.requests) == asked

    remote.done(*ROWS, LOCK)
    for name in IDS:
        stores = [json.loads(study.at(f"cache/decoder/{name}.json").read_text()) for study in (remote, smoke)]
        rows = [{path: file for path, file in store["files"].items() if "/c/" in path} for store in stores]
        assert rows[0] == rows[1]
        audit = json.loads(remote.at(f"checkpoints/decoder/{name}.json").read_text())
        assert audit["source"]["repo"] == "org/tiny"
        assert audit["source"]["commit"] == hub.commit("org/tiny", name)
        assert not remote.at(f"weights/decoder/{name}").exists()
    assert remote.planned(*ROWS, LOCK) == {}

    again = remote.changed({"capture.batch_size": 8})
    assert again.planned(*ROWS, LOCK)["prefetch_and_clean"] == 3


@pytest.mark.slow
def test_a_model_with_code_of_its_own_gives_the_rows_of_its_family(remote: Study, smoke: Study, hub: Hub):
    """The smoke decoder under a name that transformers does not know; its classes come from one pinned commit."""
    own = {name: remote.folder / "own" / name for name in (*IDS, "code")}
    for name, folder in own.items():
        shutil.copytree(
            smoke.at(f"weights/decoder/checkpoint-{name.replace('code', '10').replace('step', '')}"), folder
        )
        name_code(folder)
        give_code(folder, trap=None if name == "code" else remote.folder / "trap")
    hub.repos["org/own"] = own
    pin = {"repo": "org/own", "tokenizer": None, "remote_code": hub.commit("org/own", "code")}
    study = remote.changed({f"models.decoder.source.{name}": value for name, value in pin.items()})
    assert isotrace(study, "resolve", "decoder").returncode == 0
    study.done(*ROWS)
    for name in IDS:
        stores = [json.loads(one.at(f"cache/decoder/{name}.json").read_text()) for one in (study, smoke)]
        rows = [{path: file for path, file in store["files"].items() if "/c/" in path} for store in stores]
        assert rows[0] == rows[1]
    assert not (remote.folder / "trap").exists()


def test_a_refused_download_is_one_line_and_no_capture_starts(remote: Study, hub: Hub, refused: Refused):
    assert isotrace(remote, "resolve", "decoder").returncode == 0
    hub.gated = {"org/tiny"}
    line = refused(remote.snakemake("results/checkpoints/decoder/step3.json"))
    assert "hub: org/tiny" in line
    assert "gated (401)" in line


def test_a_lock_that_is_committed_is_demanded(own: Study, refused: Refused):
    """Locking a finished study runs the lock alone; a checkpoint with other tensors stops it, by name."""
    locked = own.changed({"locked": True})
    assert "there is no config/locks/decoder.lock.json" in refused(locked.snakemake("--dry-run"))
    assert isotrace(own, "lock").returncode == 0
    assert locked.planned(LOCK) == {"lock": 1}
    locked.done(LOCK)
    committed = own.folder / "config" / "locks" / "decoder.lock.json"
    kept = json.loads(committed.read_text())
    kept["checkpoints"][1]["tensors_digest"] = "0" * 64
    committed.write_text(json.dumps(kept))
    result = locked.snakemake(LOCK)
    assert "locked: 1 checkpoints of decoder differ from config/locks/decoder.lock.json" in refused(result)
    assert "  step3: tensors " in result.stdout
    assert "000000000000… then" in result.stdout
