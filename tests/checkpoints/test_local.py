"""Folders are found by number; temporary and foreign names are left out by name; nothing heavy is imported."""

import subprocess
import sys
from pathlib import Path

import pytest

from isotrace.checkpoints.local import discover, left_out
from isotrace.errors import ConfigError


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).mkdir(parents=True)


def test_order_is_numeric_and_paths_are_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "run/checkpoint-10", "run/checkpoint-9", "run/checkpoint-100")
    monkeypatch.chdir(tmp_path)
    found = discover("run/checkpoint-{step}")
    assert [(item.id, item.step) for item in found] == [("step9", 9), ("step10", 10), ("step100", 100)]
    assert found[0].path == "run/checkpoint-9"


def test_the_step_may_stand_above(tmp_path: Path) -> None:
    make(tmp_path, "step_5/hf", "step_20k/hf", "step_7")
    found = discover(str(tmp_path / "step_{step}" / "hf"))
    assert [(item.step, item.path) for item in found] == [
        (5, str(tmp_path / "step_5/hf")),
        (20_000, str(tmp_path / "step_20k/hf")),
    ]


def test_temporary_and_foreign_names_are_left_out_and_named(tmp_path: Path) -> None:
    make(tmp_path, "checkpoint-1", "tmp-checkpoint-2", "checkpoint-last", "checkpoint-3.incomplete", "runs")
    (tmp_path / "checkpoint-4").write_text("a file")
    pattern = str(tmp_path / "checkpoint-{step}")
    assert [item.id for item in discover(pattern)] == ["step1"]
    out = {Path(item.path).name: item.reason for item in left_out(pattern)}
    assert sorted(out) == ["checkpoint-3.incomplete", "checkpoint-4", "checkpoint-last", "tmp-checkpoint-2"]
    assert out["checkpoint-4"] == "not a folder"


def test_two_spellings_of_a_step_get_labels(tmp_path: Path) -> None:
    make(tmp_path, "checkpoint-010", "checkpoint-10", "checkpoint-2")
    found = discover(str(tmp_path / "checkpoint-{step}"))
    assert [item.id for item in found] == ["step2", "step10-checkpoint-010", "step10-checkpoint-10"]


def test_nothing_there_is_nothing_found(tmp_path: Path) -> None:
    assert discover(str(tmp_path / "nowhere" / "checkpoint-{step}")) == []


@pytest.mark.parametrize("pattern", ["runs/checkpoint-*", "runs/{step}/checkpoint-{step}"])
def test_a_pattern_needs_one_step(pattern: str) -> None:
    with pytest.raises(ConfigError, match=r"write \{step\} once"):
        discover(pattern)


def test_parsing_stays_cheap() -> None:
    heavy = "{'torch', 'transformers', 'numpy', 'pandas'}"
    code = (
        f"import sys, isotrace.checkpoints.local, isotrace.checkpoints.lock; print(sorted({heavy} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
