"""Untrained models as a series, and as the step 0 of a stored one: what a config names before any job."""

import json
from pathlib import Path
from typing import Any

import pytest

from configs import smoke
from isotrace.errors import ConfigError
from isotrace.params import Params
from isotrace.study import Study, load

SIZE = {"model_type": "gpt_neox", "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}


def study_of(source: dict[str, Any], **model: Any) -> Study:
    return load(smoke({"models": {"mine": {"objective": "clm", "source": source, **model}}}))


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, Any]:
    """A local series of steps 5 and 90 that is read no further than its names."""
    for step in (5, 90):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(SIZE))
        (folder / "tokenizer.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"")
    return {"kind": "local", "path": f"{tmp_path}/checkpoint-{{step}}"}


def test_every_seed_is_a_checkpoint_at_step_0() -> None:
    series = study_of({"kind": "init", "architecture": SIZE, "seeds": [0, 3]}).series["mine"]
    assert [(f.id, f.step, f.tokens) for f in series.found] == [("step0-seed0", 0, 0), ("step0-seed3", 0, 0)]
    assert [f.made_by for f in series.found] == [f"<results>/weights/mine/init-{seed}.json" for seed in (0, 3)]
    assert series.early(0.3) == series.ids
    assert series.tokenizer == "<results>/weights/mine/tokenizer/tokenizer.json"
    assert series.total_steps == 1


def test_a_single_seed_needs_no_label_and_is_one_checkpoint_too_few() -> None:
    with pytest.raises(ConfigError, match=r"bases.early_fraction: .* 1 early checkpoint\(s\) of mine \(steps \[0\]"):
        study_of({"kind": "init", "architecture": SIZE, "seeds": [3]})


def test_a_folders_architecture_and_tokenizer_are_taken(stored: dict[str, Any]) -> None:
    folder = stored["path"].replace("{step}", "5")
    series = study_of({"kind": "init", "folder": folder}).series["mine"]
    assert (series.shape, series.tokenizer) == (f"{folder}/config.json", f"{folder}/tokenizer.json")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ({}, "models.mine.source: architecture or folder: name one of the two"),
        ({"architecture": SIZE, "folder": "x"}, "models.mine.source: architecture or folder: name one of the two"),
        ({"architecture": {"hidden_size": 8}}, "models.mine.source: architecture.model_type is missing"),
        ({"architecture": SIZE, "seeds": [1, 0]}, r"models.mine.source: seeds must rise .* got \[1, 0\]"),
        ({"architecture": SIZE, "seeds": [0, 0]}, "without repeats"),
        ({"architecture": SIZE, "tokenizer": "no/such"}, "models.mine.source.tokenizer: no/such holds no tokenizer"),
        ({"folder": "no/such"}, "models.mine.source.folder: no/such holds no config.json"),
        ({"architecture": SIZE | {"hidden_size": 6}}, "bases.ranks: 4 is above half the width 6 of models.mine.source"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(source: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        study_of({"kind": "init", **source})
    assert "\n" not in str(caught.value)


def test_a_stored_series_gets_a_step_0_of_its_own_architecture(stored: dict[str, Any]) -> None:
    plain = study_of(stored, total_steps=1000).series["mine"]
    series = study_of(stored | {"with_init": True}, total_steps=1000).series["mine"]
    assert series.ids == ["step0", *plain.ids]
    assert series.found[0].path == "<results>/weights/mine/init"
    assert (series.shape, series.tokenizer, series.total_steps) == (plain.shape, plain.tokenizer, 1000)


def test_a_series_with_a_step_0_takes_no_second_one(stored: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "checkpoint-5").rename(tmp_path / "checkpoint-0")
    with pytest.raises(ConfigError, match=r"models.mine.source.with_init: the series has a step 0 .*checkpoint-0"):
        study_of(stored | {"with_init": True})


def test_seeds_are_the_sources_or_the_runs(stored: dict[str, Any]) -> None:
    own = Params(study_of({"kind": "init", "architecture": SIZE, "seeds": [0, 3]}, seed=8))
    added = Params(study_of(stored | {"with_init": True}, total_steps=1000, seed=8))
    assert [own.initialise("mine", draw)["seed"] for draw in ("init-0", "init-3")] == [0, 3]
    assert added.initialise("mine", "init")["seed"] == 8
    assert (own.initialise("mine", "init-0")["architecture"], added.initialise("mine", "init")["architecture"]) == (
        dict(sorted(SIZE.items())),
        None,
    )
