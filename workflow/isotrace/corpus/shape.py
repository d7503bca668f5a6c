"""Embedding rows and context length of a model, from its config alone; counts have as many entries as rows."""

import json
from pathlib import Path
from typing import Any

from isotrace.errors import DataError

_CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len")
UNLIMITED = 2**31 - 1


def with_shape(spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of ``tokenize`` with ``embedding_rows`` and ``context`` (a model without a limit has a large one).

    ``architecture`` is the config of a model to be trained, ``folder`` a checkpoint to read it from.
    """
    config = spec["architecture"] if "architecture" in spec else _read(Path(spec["folder"]) / "config.json")
    config = config.get("text_config", config)
    if "vocab_size" not in config:
        raise DataError(f"{spec.get('folder', 'architecture')}: no vocab_size in the model's config")
    context = next((config[name] for name in _CONTEXT if config.get(name)), UNLIMITED)
    return spec | {"embedding_rows": config["vocab_size"], "context": context}


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no readable model config ({error}); half-written, or not a checkpoint") from None
    return content
