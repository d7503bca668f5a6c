"""Embedding rows and context length of a model, from its config alone; counts have as many entries as rows."""

import json
from pathlib import Path
from typing import Any

from isotrace.errors import DataError

CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len")
"""Fields of a model's config that limit the length of its input."""

UNLIMITED = 2**31 - 1


def with_shape(spec: dict[str, Any], config_path: Path | None) -> dict[str, Any]:
    """The spec of ``tokenize`` with ``embedding_rows`` and ``context`` (a model without a limit has a large one).

    ``shape`` in the spec describes a model to be trained; a stored one is read from its config.json.
    """
    config = spec["shape"] if config_path is None else _read(config_path)
    config = config.get("text_config", config)
    if "vocab_size" not in config:
        raise DataError(f"{config_path}: no vocab_size in the model's config")
    context = next((config[name] for name in CONTEXT if config.get(name)), UNLIMITED)
    return spec | {"embedding_rows": config["vocab_size"], "context": context}


def _read(path: Path) -> dict[str, Any]:
    try:
        content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: no readable model config ({error}); half-written, or not a checkpoint") from None
    return content
