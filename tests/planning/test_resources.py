"""What jobs ask a scheduler for: more at each attempt, by model where models differ, a GPU where the config says so."""

import json

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.planning.resources import ALIKE, LEAST_MB, LEAST_MINUTES, Requests
from isotrace.study import load

WIDE = {"model_type": "gpt_neox", "hidden_size": 2048, "num_hidden_layers": 24, "num_attention_heads": 16}
WIDE |= {"intermediate_size": 8192, "max_position_embeddings": 64}


@pytest.fixture
def unlike():
    """A study of a small model and a large one."""
    return Requests(load(smoke({"models.decoder.source.architecture": WIDE})))


@pytest.mark.parametrize("rule", ["capture", "energy", "train", "dynamics", "perceive"])
def test_every_attempt_asks_for_as_much_again(unlike, rule):
    model = "" if rule == "dynamics" else "decoder"
    for ask in (unlike.memory, unlike.runtime):
        assert [ask(rule, model, n) for n in (2, 3)] == [n * ask(rule, model, 1) for n in (2, 3)]


def test_the_least_is_asked_for_where_little_is_needed(unlike):
    assert (unlike.memory("dynamics", "", 1), unlike.runtime("lock", "encoder", 1)) == (LEAST_MB, LEAST_MINUTES)


def test_a_capture_asks_for_its_own_model(unlike):
    large, small = (unlike.memory("capture", model, 1) for model in ("decoder", "encoder"))
    weights = 4 * 1.2e9 / 1e6
    assert large > 2 * weights > 2 * small
    assert unlike.runtime("train", "decoder", 1) > unlike.runtime("train", "encoder", 1)


@pytest.mark.parametrize("rule", ALIKE)
def test_jobs_of_an_array_ask_for_what_the_largest_needs(unlike, rule):
    assert unlike.memory(rule, "decoder", 1) == unlike.memory(rule, "encoder", 1)
    assert unlike.runtime(rule, "decoder", 1) == unlike.runtime(rule, "encoder", 1)


def test_an_array_has_memory_for_the_largest_model(unlike):
    assert unlike.memory("energy", "encoder", 1) > Requests(load(smoke())).memory("energy", "encoder", 1)


@pytest.mark.parametrize(("device", "gpus"), [("cuda", 1), ("auto", 0), ("cpu", 0)])
def test_a_gpu_is_asked_for_where_the_config_does(device, gpus):
    assert Requests(load(smoke({"execution.device": device}))).gpus() == gpus


def series_without_a_config(file):
    at = {"repo": "org/wide", "subfolder": None, "commit": "0" * 40, "files": {}}
    steps = [at | {"label": f"step{n}", "step": n, "revision": f"step{n}", "tokens_seen": None} for n in (0, 1, 10)]
    known = {"model": "mine", "repo": "org/wide", "total_steps": 10, "tokens_per_step": None, "checkpoints": steps}
    file.write_text(json.dumps(known | {"tokenizer": at | {"revision": "main"}, "config": {}}))
    return {"kind": "hub", "repo": "org/wide", "series": str(file)}


def test_a_size_that_comes_with_a_download_is_known_from_then_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    source = series_without_a_config(tmp_path / "mine.json")
    resources = Requests(load(smoke({"models": {"mine": {"objective": "clm", "source": source}}})))
    assert resources.memory("capture", "mine", 1) == LEAST_MB
    fetched = tmp_path / "results" / "weights" / "mine" / "tokenizer" / "config.json"
    fetched.parent.mkdir(parents=True)
    fetched.write_text(json.dumps(WIDE | {"vocab_size": 512}))
    assert resources.memory("capture", "mine", 1) > LEAST_MB
    assert resources.memory("energy", "mine", 1) > LEAST_MB


def test_arrays_of_the_profile_are_the_rules_whose_jobs_are_alike():
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "config.yaml").read_text())
    assert tuple(profile["slurm-array-jobs"].split(", ")) == ALIKE
