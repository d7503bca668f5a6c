"""Seeds as runs through Snakemake: what runs of a group share, and what tells them apart."""

import json
from collections import Counter
from typing import Any

import pytest
import yaml
from running import Study

from isotrace.planning.jobs import jobs
from isotrace.study import read

RUNS = ("decoder-seed0", "decoder-seed1")


@pytest.fixture
def seeds(smoke: Study, fresh: Study) -> Study:
    """The smoke decoder from two seeds, the first of them the smoke study's own."""
    raw: dict[str, Any] = yaml.safe_load(smoke.config.read_text())
    raw["models"] = {"decoder": raw["models"]["decoder"] | {"seeds": [0, 1]}}
    return fresh.written(raw)


def test_one_tokenizer_serves_all_runs_of_a_group(seeds: Study) -> None:
    counted: Counter[str] = Counter()
    for one in jobs(read(seeds.config)):
        counted[one.rule] += one.n
    planned = seeds.planned()
    assert (planned["tokenizer"], planned["train"], planned["capture"]) == (1, 2, 6)
    assert {rule: counted[rule] for rule in ("tokenizer", "train", "tokens", "capture")} == {
        rule: planned[rule] for rule in ("tokenizer", "train", "tokens", "capture")
    }


def digests(study: Study, model: str) -> list[str]:
    lock = json.loads(study.at(f"checkpoints/{model}.lock.json").read_text())
    return [checkpoint["tensors_digest"] for checkpoint in lock["checkpoints"]]


@pytest.mark.slow
def test_runs_differ_in_weights_and_read_the_same_tokens(seeds: Study, smoke: Study) -> None:
    seeds.done(*(f"results/checkpoints/{run}.lock.json" for run in RUNS))
    first, second = (digests(seeds, run) for run in RUNS)
    assert first == digests(smoke, "decoder")
    assert not set(first) & set(second)
    manifests = [json.loads(seeds.at(f"tokens/{run}.json").read_text()) for run in RUNS]
    assert manifests[0]["files"] == manifests[1]["files"]
    tokenizers = [seeds.at(f"weights/{run}/checkpoint-10/tokenizer.json").read_bytes() for run in RUNS]
    assert tokenizers[0] == tokenizers[1] == seeds.at("weights/decoder/tokenizer/tokenizer.json").read_bytes()
