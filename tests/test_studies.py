"""The studies shipped: every config is valid, and the series files say no more than their labels do."""

import json
from pathlib import Path

import pytest

from configs import ROOT
from isotrace.checkpoints.labels import FAMILIES, Label, checkpoint_ids, read_label
from isotrace.errors import ConfigError
from isotrace.settings.sources import Hub
from isotrace.study import Study, read, validated
from isotrace.yamlfile import read_mapping

NO_STUDIES = ("claims", "default")
LOCAL = "my-run"
STUDIES = sorted(path.stem for path in (ROOT / "config").glob("*.yaml") if path.stem not in NO_STUDIES)
SERIES = sorted((ROOT / "config" / "series").glob("*.json"))
FAMILY = {"pythia": "pythia", "smollm2": "smollm", "olmo2": "olmo2"}
WIDTHS = {"pythia-160m": 768, "pythia-410m": 1024, "pythia-1b": 2048}


def config(name: str) -> Path:
    return ROOT / "config" / f"{name}.yaml"


def on_hub() -> dict[str, Hub]:
    """The hub sources of all studies by model, however many studies read it."""
    studies: list[Study] = [validated(read_mapping(config(name))) for name in STUDIES]
    return {
        name: model.source for study in studies for name, model in study.models.items() if isinstance(model.source, Hub)
    }


@pytest.mark.parametrize("name", [name for name in STUDIES if name != LOCAL])
def test_a_study_is_valid_wherever_it_is_read(name, tmp_path, monkeypatch):
    """Offline, from any folder; every series has two early checkpoints and an end."""
    monkeypatch.chdir(tmp_path)
    study = read(config(name))
    assert study.study == name
    for model, series in study.series.items():
        assert len(series.early(study.bases.early_fraction)) >= 2
        assert 2 * max(study.bases.ranks) <= WIDTHS.get(model.split("-seed")[0], 2 * max(study.bases.ranks))
    late = {model: [f for f in s.found if f.step / s.total_steps >= 0.7] for model, s in study.series.items()}
    assert name in ("untrained", "modalities") or all(len(found) >= 1 for found in late.values())


def test_the_template_reads_the_folder_of_a_trainer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as caught:
        read(config(LOCAL))
    assert str(caught.value).startswith("models.mine.source.path: no folder matches 'runs/mine/checkpoint-{step}'")
    for step in (500, 1000, 1500, 2000, 10_000):
        folder = tmp_path / "runs" / "mine" / f"checkpoint-{step}"
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"model_type": "gpt2", "n_embd": 64}')
        (folder / "tokenizer.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"")
    series = read(config(LOCAL)).series["mine"]
    assert series.ids == ["step500", "step1000", "step1500", "step2000", "step10000"]
    assert len(series.early(0.3)) == 4


def test_models_of_several_studies_have_one_source_and_every_series_is_read():
    """Two studies share a series file, so they must agree on what it lists."""
    repos: dict[str, set[str]] = {}
    for name in STUDIES:
        for model, block in validated(read_mapping(config(name))).models.items():
            if isinstance(block.source, Hub):
                key = json.dumps([block.source.repo, block.source.revisions.labels, block.tokens_per_step])
                repos.setdefault(model, set()).add(key)
    assert {model: len(found) for model, found in repos.items()} == dict.fromkeys(repos, 1)
    assert sorted(repos) == sorted(path.stem for path in SERIES)


@pytest.mark.parametrize("path", SERIES, ids=lambda path: path.stem)
def test_a_series_file_is_what_resolve_writes_of_unresolved_labels(path):
    text = path.read_text(encoding="utf-8")
    content = json.loads(text)
    assert text == json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    entries, source = content["checkpoints"], on_hub()[path.stem]
    family = FAMILY[path.stem.split("-")[0]]
    assert family in FAMILIES
    for entry in entries:
        label = read_label(entry["label"], family)
        assert label is not None
        assert label.step == read_label(entry["label"], source.revisions.labels).step == entry["step"]
        per_step = content["tokens_per_step"]
        assert entry["tokens_seen"] == (label.tokens if per_step is None else per_step * entry["step"])
        assert (entry["repo"], entry["revision"]) == (source.repo, entry["label"])
    steps = [entry["step"] for entry in entries]
    assert steps == sorted(set(steps))
    assert content["total_steps"] == steps[-1]
    ids = checkpoint_ids([Label(entry["label"], entry["step"]) for entry in entries])
    assert len(set(ids)) == len(ids)
    tokenizer = source.tokenizer
    beside = (source.repo, entries[-1]["label"]) if tokenizer is None else (tokenizer.repo, tokenizer.revision)
    assert (content["tokenizer"]["repo"], content["tokenizer"]["revision"]) == beside


def test_what_is_not_resolved_claims_nothing():
    """Sizes, hashes and an architecture come with commits, from the hub."""
    for path in SERIES:
        content = json.loads(path.read_text(encoding="utf-8"))
        places = [content["tokenizer"], *content["checkpoints"]]
        assert [place for place in places if place["commit"] is None and place["files"]] == []
        assert any(place["commit"] for place in places) or content["config"] == {}


@pytest.mark.parametrize(
    ("name", "number", "first", "last"),
    [
        ("pythia-1b", 154, "step0", "step143000"),
        ("smollm2-360m", 16, "step-160000", "step-2560000"),
        ("smollm2-1.7b", 40, "step-125000", "step-5000000"),
        ("olmo2-1b", 185, "stage1-step0-tokens0B", "stage1-step1907359-tokens4001B"),
    ],
)
def test_the_ladders_are_whole(name, number, first, last):
    """As shipped; once resolved, a file lists what the hub has."""
    entries = json.loads((ROOT / "config" / "series" / f"{name}.json").read_text())["checkpoints"]
    if all(entry["commit"] is None for entry in entries):
        assert (len(entries), entries[0]["label"], entries[-1]["label"]) == (number, first, last)
