"""`isotrace resolve` against a hub on loopback: what it writes, what it says, and what it makes of a bad answer."""

import json

import pytest
import yaml

from configs import ROOT
from hub_server import Fault
from isotrace.cli import main
from isotrace.errors import DataError
from isotrace.hub.client import Client
from isotrace.hub.write import write_series
from isotrace.study import read, validated
from isotrace.yamlfile import read_mapping


def resolved(config, **client):
    return write_series("decoder", validated(read_mapping(config)), Client(pause=0.01, **client))


def content(tmp_path):
    return json.loads((tmp_path / "config" / "series" / "decoder.json").read_text())


def test_labels_become_commits_with_sizes_and_hashes_of_what_loading_takes(hub, configured, tmp_path):
    said = resolved(configured())
    found = content(tmp_path)
    assert [entry["label"] for entry in found["checkpoints"]] == ["step0", "step8", "step90", "step100"]
    assert found["total_steps"] == 100
    first, last = found["checkpoints"][0], found["checkpoints"][-1]
    assert first["commit"] == hub.commit("org/tiny", "step0")
    assert set(first["files"]) == {"config.json", "model.safetensors"}
    assert first["files"]["model.safetensors"]["bytes"] == 40_000
    assert len(first["files"]["model.safetensors"]["sha256"]) == 64
    assert first["files"]["config.json"]["sha256"] is None
    assert set(last["files"]) == {"config.json", "pytorch_model.bin"}
    assert set(found["tokenizer"]["files"]) == {"tokenizer.json"}
    assert found["config"]["hidden_size"] == 32
    assert "4 checkpoints, step0 to step100" in said
    assert "1 other names ignored: main" in said
    assert "1 without weights, to be left out of the statistics: step90" in said
    assert "1 with pytorch_model.bin only" in said
    assert hub.asked("GET", "safetensors") == 0


def seeing(tmp_path, **model):
    """The shipped study of images cut to one model, on the hub."""
    raw = read_mapping(ROOT / "config" / "modalities.yaml")
    source = {"kind": "hub", "repo": "org/tiny"} | model.pop("source", {})
    raw |= {"models": {"decoder": {"objective": "none", "source": source} | model}, "tokens": {"sequence_length": 64}}
    file = tmp_path / "seeing.yaml"
    file.write_text(yaml.safe_dump(raw))
    return file


def test_of_images_the_processor_takes_the_place_of_a_tokenizer(hub, tmp_path):
    config = seeing(tmp_path, modality="image", corpus="photographs")
    with pytest.raises(DataError, match=r"models.decoder.source.tokenizer: org/tiny at step100 holds no preprocessor_"):
        resolved(config)
    (hub.folder("org/words", "main") / "preprocessor_config.json").write_text("{}")
    elsewhere = {"source": {"tokenizer": {"repo": "org/words"}}}
    config = seeing(tmp_path, modality="image", corpus="photographs", **elsewhere)
    resolved(config)
    assert set(content(tmp_path)["tokenizer"]["files"]) == {"preprocessor_config.json"}
    assert read(config).series["decoder"].tokenizer == "<results>/weights/decoder/tokenizer/prefetch.json"


def test_characters_need_no_tokenizer(hub, tmp_path):
    for folder in hub.repos["org/tiny"].values():
        (folder / "tokenizer.json").unlink()
    (tmp_path / "a.txt").write_text("text")
    raw = read_mapping(seeing(tmp_path, modality="bytes"))
    raw |= {"corpora": {"text": {"source": "files", "paths": ["a.txt"]}}, "buckets": {"number": 2}}
    config = tmp_path / "canine.yaml"
    config.write_text(yaml.safe_dump(raw))
    resolved(config)
    assert content(tmp_path)["tokenizer"]["files"] == {}
    assert read(config).series["decoder"].tokenizer == ""


def test_the_file_is_the_same_whenever_it_is_written(hub, configured, tmp_path):
    resolved(configured())
    before = (tmp_path / "config" / "series" / "decoder.json").read_bytes()
    hub.repos["org/tiny"] = dict(reversed(hub.repos["org/tiny"].items()))
    resolved(configured())
    assert (tmp_path / "config" / "series" / "decoder.json").read_bytes() == before


def test_a_study_is_read_from_the_file_alone(hub, configured):
    config = configured(revisions={"labels": "pythia", "take": {"steps": [0, 8, 100]}})
    resolved(config)
    asked = len(hub.requests)
    series = read(config).series["decoder"]
    assert series.ids == ["step0", "step8", "step100"]
    assert series.at("step8").origin["commit"] == hub.commit("org/tiny", "step8")
    assert series.at("step8").path == "<results>/weights/decoder/step8"
    assert len(hub.requests) == asked


def test_another_choice_needs_no_network(hub, configured):
    resolved(configured())
    asked = len(hub.requests)
    assert read(configured(revisions={"max": 90})).series["decoder"].ids == ["step0", "step8", "step90"]
    assert len(hub.requests) == asked


def test_a_repo_a_checkpoint(hub, configured, tmp_path):
    steps = {"0k": "step0", "20k": "step8", "200k": "step100"}
    tiny = hub.repos["org/tiny"]
    hub.repos |= {f"org/bert-seed_0-step_{step}": {"main": tiny[name]} for step, name in steps.items()}
    hub.repos["org/bert-seed_0-final"] = {"main": tiny["main"]}
    said = resolved(configured(repo="org/bert-seed_0-step_{step}"))
    found = content(tmp_path)["checkpoints"]
    assert [entry["step"] for entry in found] == [0, 20_000, 200_000]
    assert {entry["revision"] for entry in found} == {"main"}
    assert found[1]["repo"] == "org/bert-seed_0-step_20k"
    assert "3 checkpoints" in said


def test_a_subfolder_and_a_tokenizer_elsewhere(hub, configured, tmp_path):
    for folder in hub.repos["org/tiny"].values():
        inner = folder / "hf"
        inner.mkdir()
        for file in ("config.json", "model.safetensors"):
            if (folder / file).exists():
                (folder / file).rename(inner / file)
        (folder / "tokenizer.json").unlink()
    config = configured(subfolder="hf", tokenizer={"repo": "org/words"})
    resolved(config)
    found = content(tmp_path)
    assert found["checkpoints"][0]["subfolder"] == "hf"
    assert set(found["checkpoints"][0]["files"]) == {"config.json", "model.safetensors"}
    assert found["tokenizer"]["commit"] == hub.commit("org/words", "main")


def test_a_busy_and_a_failing_server_are_waited_for(hub, configured, tmp_path):
    hub.faults = [
        Fault("GET", "/refs", 429, headers={"Retry-After": "0"}),
        Fault("GET", "/refs", 503, times=2),
        Fault("GET", "/tree/", 429, headers={"Retry-After": "0"}),
    ]
    resolved(configured())
    assert hub.asked("GET", "/refs") == 4
    assert len(content(tmp_path)["checkpoints"]) == 4


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("GET", "/refs", 500, times=99), "the server answered 500 after 6 tries"),
        (Fault("GET", "/refs", 403, times=99), "gated (403)"),
        (Fault("GET", "/refs", 401, times=99, headers={"X-Error-Code": "GatedRepo"}), "gated (401)"),
        (Fault("GET", "/refs", 401, times=99), "not there, or private or gated (401)"),
        (Fault("GET", "/refs", 404, times=99), "not there (404)"),
    ],
    ids=lambda value: "" if isinstance(value, str) else str(value.kind),
)
def test_a_refusal_is_one_line(hub, configured, fault, said):
    hub.faults = [fault]
    with pytest.raises(Exception, match="hub: org/tiny: ") as caught:
        resolved(configured())
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_gated_repo_is_read_with_a_token_and_not_without(hub, configured, monkeypatch, capsys, tmp_path):
    hub.gated = {"org/tiny"}
    config = configured()
    assert main(["resolve", "decoder", "--configfile", str(config)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "hf auth login" in error
    monkeypatch.setenv("HF_TOKEN", "hf_made_up")
    assert main(["resolve", "decoder", "--configfile", str(config)]) == 0
    assert "decoder.json: written; commit it" in capsys.readouterr().out


def test_labels_that_are_not_there_or_of_several_stages_are_refused(hub, configured):
    with pytest.raises(Exception, match=r"none of its 5 names is a label of 'trainer' \(main, step0"):
        resolved(configured(revisions={"labels": "trainer"}))
    step0 = hub.repos["org/tiny"]["step0"]
    hub.repos["org/tiny"] = {f"stage{n}-step10-tokens1B": step0 for n in (1, 2)}
    with pytest.raises(Exception, match=r"stages \[1, 2\].* stage1-step\(\?P<step>"):
        resolved(configured(revisions={"labels": "olmo2"}))


def test_only_a_model_on_the_hub_can_be_resolved(configured, hub, capsys):
    assert main(["resolve", "encoder", "--configfile", str(configured())]) == 1
    assert "'encoder' is no model with source hub; there are ['decoder']" in capsys.readouterr().err
