"""Untrained models as series, and as the step 0 of a stored one, through Snakemake."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from running import Study


@pytest.fixture
def untrained(smoke: Study, fresh: Study) -> Study:
    """``random``: two seeds of the smoke decoder; ``mine``: its steps 3 and 10 as a stored series, without step 0."""
    stored = fresh.folder / "mine"
    for step in (3, 10):
        shutil.copytree(smoke.at(f"weights/decoder/checkpoint-{step}"), stored / f"checkpoint-{step}")
    raw: dict[str, Any] = yaml.safe_load(smoke.config.read_text())
    architecture = raw["models"]["decoder"]["source"]["architecture"]
    sources = {
        "random": {"kind": "init", "architecture": architecture, "seeds": [0, 1], "vocabulary": 512},
        "mine": {"kind": "local", "path": f"{stored}/checkpoint-{{step}}", "with_init": True},
    }
    raw["models"] = {name: {"objective": "clm", "source": source} for name, source in sources.items()}
    return fresh.written(raw)


def digests(study: Study, model: str) -> dict[str, str]:
    lock = json.loads(study.at(f"checkpoints/{model}.lock.json").read_text())
    assert {checkpoint["status"] for checkpoint in lock["checkpoints"]} == {"ok"}
    return {checkpoint["id"]: checkpoint["tensors_digest"] for checkpoint in lock["checkpoints"]}


@pytest.mark.slow
def test_weights_follow_from_architecture_and_seed(untrained: Study, smoke: Study) -> None:
    untrained.done("results/checkpoints/random.lock.json", "results/checkpoints/mine.lock.json")
    trained, random, mine = digests(smoke, "decoder"), digests(untrained, "random"), digests(untrained, "mine")
    # One seed, one architecture, three processes: the step 0 of a training, of a series of seeds, and the added one.
    assert mine == trained
    assert random["step0-seed0"] == trained["step0"] != random["step0-seed1"]
    assert untrained.planned("results/checkpoints/mine.lock.json") == {}
    assert not list(Path(untrained.folder).glob("results/weights/*/tmp-*"))


@pytest.mark.slow
def test_every_stage_takes_untrained_models(untrained: Study) -> None:
    untrained.done()
    energy = untrained.table("energy")
    assert set(energy[energy["model"] == "random"]["checkpoint"]) == {"step0-seed0", "step0-seed1"}
    assert set(energy[energy["model"] == "mine"]["step"]) == {0, 3, 10}
    assert set(energy[energy["model"] == "random"]["phase"]) == {"early"}
    audit = untrained.table("audit")
    assert audit[audit["severity"].isin(["warning", "error"])].empty
    assert untrained.planned() == {}
