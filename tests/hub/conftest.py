"""Two small repos on a loopback hub, and a config that reads one."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from configs import smoke
from hub_server import Hub, serving

CONFIG = '{"model_type": "gpt_neox", "hidden_size": 32, "max_position_embeddings": 64, "vocab_size": 512}'


def checkpoint(folder: Path, seed: int, *, weights: str = "model.safetensors") -> Path:
    """Files as a checkpoint has them; nothing here loads them."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(CONFIG)
    (folder / "tokenizer.json").write_text("{}")
    (folder / "README.md").write_text("tiny")
    if weights:
        (folder / weights).write_bytes(bytes((seed + i * i) % 251 for i in range(40_000)))
    return folder


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """``org/tiny`` with steps 0, 8, 100 (only ``.bin``), 90 (no weights) and ``main``; ``org/words``, a tokenizer."""
    tiny = {
        name: checkpoint(tmp_path / "hub" / name, i, weights=weights)
        for i, (name, weights) in enumerate(
            [
                ("step100", "pytorch_model.bin"),
                ("main", "model.safetensors"),
                ("step0", "model.safetensors"),
                ("step90", ""),
                ("step8", "model.safetensors"),
            ]
        )
    }
    words = checkpoint(tmp_path / "hub" / "words", 0, weights="")
    found = Hub({"org/tiny": tiny, "org/words": {"main": words}})
    with serving(found):
        monkeypatch.setenv("HF_ENDPOINT", found.url)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "none"))
        yield found


@pytest.fixture
def configured(tmp_path: Path) -> Any:
    """The smoke study with its decoder on the hub, edited below ``models.decoder.source``; written to a file."""

    def write(**source: Any) -> Path:
        raw = smoke({"models.decoder.source": {"kind": "hub", "repo": "org/tiny"} | source})
        del raw["models"]["encoder"]
        file = tmp_path / "mine.yaml"
        file.write_text(yaml.safe_dump(raw))
        return file

    return write


@pytest.fixture
def download(hub: Hub) -> dict[str, Any]:
    """What the series file says of step 8."""
    folder = hub.repos["org/tiny"]["step8"]
    content = (folder / "model.safetensors").read_bytes()
    return {
        "repo": "org/tiny",
        "revision": "step8",
        "commit": hub.commit("org/tiny", "step8"),
        "subfolder": None,
        "files": {
            "config.json": {"bytes": (folder / "config.json").stat().st_size, "sha256": None},
            "model.safetensors": {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()},
        },
    }
