"""Watching a folder that grows: what is new is analysed once, and never while it is being written."""

import json
from pathlib import Path

import pytest

from isotrace.errors import ConfigError
from isotrace.study import load, validated
from isotrace.watch import watch


def config(folder: Path, **model) -> dict:
    source = {"kind": "local", "path": f"{folder}/checkpoint-{{step}}"}
    text = folder / "text.txt"
    text.write_text("words " * 50)
    return {
        "study": "live",
        "corpora": {"text": {"source": "files", "paths": [str(text)]}},
        "models": {"mine": {"objective": "clm", "source": source, **model}},
    }


def save(folder: Path, step: int, weights: bytes = b"x") -> None:
    one = folder / f"checkpoint-{step}"
    one.mkdir(exist_ok=True)
    for name in ("config.json", "tokenizer.json"):
        (one / name).write_text(json.dumps({"hidden_size": 64}))
    (one / "model.safetensors").write_bytes(weights)


def watching(folder: Path, events: list, *, until: int = 10):
    """Watch while ``events``, one a look, happen; what was analysed and what was told."""
    raw = config(folder, total_steps=100)
    analysed, told = [], []

    def analyse() -> int:
        analysed.append([f.step for f in load(raw).series["mine"].found])
        return 3

    def pause(_seconds: float) -> None:
        assert events, "watched on after the last event"
        events.pop(0)()

    code = watch(validated(raw), lambda: load(raw), analyse, every=1, until=until, tell=told.append, pause=pause)
    return analysed, told, code


def nothing() -> None:
    pass


def test_each_new_checkpoint_is_analysed_once_it_is_whole(tmp_path) -> None:
    def grow(step: int, weights: bytes = b"x"):
        return lambda: save(tmp_path, step, weights)

    events = [grow(0), grow(5), nothing, grow(10, b"half"), grow(10, b"whole file"), nothing, nothing]
    analysed, told, code = watching(tmp_path, events)
    assert analysed == [[0, 5], [0, 5, 10]]
    assert told[0].startswith("waiting: models.mine.source.path: no folder matches")
    assert told[1].startswith("waiting: bases.early_fraction")
    assert told[2:] == ["2 new or changed: checkpoint-0, checkpoint-5", "1 new or changed: checkpoint-10"]
    assert code == 3


def test_a_checkpoint_written_anew_is_analysed_again(tmp_path) -> None:
    for step in (0, 5):
        save(tmp_path, step)
    events = [nothing, lambda: save(tmp_path, 5, b"another"), lambda: save(tmp_path, 10), nothing]
    analysed, told, _ = watching(tmp_path, events)
    assert analysed == [[0, 5], [0, 5, 10]]
    assert told == ["2 new or changed: checkpoint-0, checkpoint-5", "1 new or changed: checkpoint-10"]


def test_what_cannot_be_watched_is_told_at_once(tmp_path) -> None:
    calls = {"load": None, "analyse": None, "every": 1, "until": None, "tell": None}
    with pytest.raises(ConfigError, match=r"models.mine.total_steps: needed to watch"):
        watch(validated(config(tmp_path)), **calls)
    raw = config(tmp_path) | {
        "models": {"mine": {"objective": "clm", "source": {"kind": "init", "architecture": {"model_type": "gpt_neox"}}}}
    }
    with pytest.raises(ConfigError, match=r"watch: no model of this config has `source.kind: local`"):
        watch(validated(raw), **calls)
