"""One GGUF file as a series: what a config names before any job; the file itself is not read."""

from pathlib import Path
from typing import Any

import pytest

from configs import smoke
from isotrace.errors import ConfigError
from isotrace.sources.series import Series
from isotrace.study import load


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.Q4_1.gguf"
    path.write_bytes(b"GGUF")
    return path


def series_of(source: dict[str, Any], **model: Any) -> Series:
    given = {"kind": "gguf", "step": 300, "with_init": True, **source}
    return load(smoke({"models": {"mine": {"objective": "clm", "source": given, **model}}})).series["mine"]


def test_the_file_becomes_a_folder_beside_an_untrained_step_0(file: Path) -> None:
    series = series_of({"path": str(file)}, total_steps=1000, tokens_per_step=64)
    assert [(f.id, f.tokens) for f in series.found] == [("step0", 0), ("step300", 300 * 64)]
    folder = "<results>/weights/mine/dequantised"
    assert (series.found[1].path, series.found[1].made_by) == (folder, f"{folder}.json")
    assert (series.shape, series.tokenizer) == (f"{folder}/config.json", f"{folder}/tokenizer.json")


@pytest.mark.parametrize(
    ("source", "model", "says"),
    [
        ({"path": "no/such.gguf"}, {"total_steps": 1000}, "models.mine.source.path: no file no/such.gguf"),
        ({"with_init": False}, {"total_steps": 1000}, "models.mine.source.with_init: .* set with_init: true"),
        ({}, {}, r"models.mine.total_steps so that step 300 is within bases.early_fraction of it"),
        ({}, {"total_steps": 400}, r"leaves 1 early checkpoint\(s\) of mine \(steps \[0, 300\], total 400\)"),
        ({"step": 0}, {"total_steps": 1000}, "models.mine.source.step: .*greater than or equal to 1"),
        ({"tokenizer": "no/such"}, {"total_steps": 1000}, "models.mine.source.tokenizer: no/such holds no tokenizer"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(
    file: Path, source: dict[str, Any], model: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says) as caught:
        series_of({"path": str(file), **source}, **model)
    assert "\n" not in str(caught.value)
