"""Two runs at a time: of two studies that share their downloads, and of one folder, where the second is refused."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from running import Study

from hub_server import Hub, serving

IDS = ("step0", "step3", "step10")
ROWS = [f"results/cache/decoder/{name}.json" for name in IDS]


def remote(study: Study, folder: Path, shared: Path) -> Study:
    """The smoke study in a folder of its own, its decoder on a hub, fetched through ``shared``."""
    raw = yaml.safe_load(study.config.read_text())
    del raw["models"]["encoder"]
    raw["models"]["decoder"]["source"] = {"kind": "hub", "repo": "org/tiny", "tokenizer": {"repo": "org/words"}}
    raw["storage"] = {"weights": str(shared)}
    return replace(study, folder=folder).written(raw)


def isotrace(study: Study, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "isotrace", *arguments, "--configfile", str(study.config)]


def started(study: Study, log: str = "run.log") -> "subprocess.Popen[str]":
    where = ["--snakefile", str(study.repo / "Snakefile"), "--directory", str(study.folder)]
    command = [*isotrace(study, "run"), "--cores", "1", "--log", log, *where, "--", *ROWS]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.Popen(command, cwd=study.folder, env=study.environment(), text=True, **pipes)


@pytest.mark.slow
def test_two_studies_fetch_each_file_once_and_a_second_run_of_one_folder_is_refused(
    smoke: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    weights, shared = smoke.at("weights/decoder"), tmp_path / "shared"
    revisions = {name: weights / name.replace("step", "checkpoint-") for name in IDS}
    with serving(Hub({"org/tiny": revisions, "org/words": {"main": weights / "tokenizer"}})) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        one, two = (remote(smoke, tmp_path / name, shared) for name in ("one", "two"))
        for study in (one, two):
            subprocess.run(isotrace(study, "resolve", "decoder"), cwd=study.folder, env=study.environment(), check=True)
        running = [started(study) for study in (one, two)]
        locks = one.folder / ".snakemake" / "locks"
        while not (locks.is_dir() and any(locks.iterdir())):
            assert running[0].poll() is None
            time.sleep(0.05)
        again = started(one, log="again.log")
        assert "the folder is locked by a run that goes on" in again.communicate()[0]
        assert again.returncode == 1
        for process in running:
            output = process.communicate()[0]
            assert process.returncode == 0, output
        assert hub.asked("GET", "/lfs/") == len(IDS)

    for name in IDS:
        stores = [json.loads(study.at(f"cache/decoder/{name}.json").read_text()) for study in (one, two, smoke)]
        rows = [{path: file for path, file in store["files"].items() if "/c/" in path} for store in stores]
        assert rows[0] == rows[1] == rows[2]
        files = [study.at(f"weights/decoder/{name}/model.safetensors") for study in (one, two)]
        assert os.path.samefile(*files)
        assert files[0].read_bytes() == (revisions[name] / "model.safetensors").read_bytes()
