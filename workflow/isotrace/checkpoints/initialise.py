"""A model with random weights from an architecture and a seed, and its checkpoint folder, written atomically.

Initial values are each family's own in transformers; untrained models follow Godey et al. 2024.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrace.errors import ConfigError
from isotrace.seeding import derived_seed

if TYPE_CHECKING:
    from torch import nn

_ROLES = ("pad", "bos", "eos", "cls", "sep", "mask")


def initial_model(architecture: dict[str, Any], objective: str, tokenizer: Any, seed: int) -> "nn.Module":
    """The model at step 0, the same weights for the same seed in every process; in train mode.

    architecture: ``model_type`` and fields of that family's config; ``vocab_size`` and special ids come from the
    tokenizer unless given. objective: clm | mlm. ConfigError for an unknown type, field or objective.
    """
    import torch
    import transformers

    from isotrace.checkpoints.load import AUTO_CLASSES

    config = _config(architecture, tokenizer)
    if objective not in AUTO_CLASSES:
        raise ConfigError(f"objective {objective!r}: allowed are {', '.join(AUTO_CLASSES)}")
    torch.manual_seed(derived_seed(seed, "initial"))
    try:
        model = getattr(transformers, AUTO_CLASSES[objective]).from_config(config, attn_implementation="sdpa")
    except ValueError as error:
        line = str(error).splitlines()[0]
        raise ConfigError(
            f"architecture {architecture['model_type']!r} with objective {objective!r}: {line}"
        ) from error
    trained: nn.Module = model.float().train()
    return trained


def _config(architecture: dict[str, Any], tokenizer: Any) -> Any:
    from transformers import AutoConfig

    fields = {name: value for name, value in architecture.items() if name != "model_type"}
    try:
        known = AutoConfig.for_model(architecture["model_type"])
    except ValueError as error:
        raise ConfigError(f"model_type {architecture['model_type']!r} is not one that transformers knows") from error
    unknown = [name for name in fields if not hasattr(known, name)]
    if unknown:
        raise ConfigError(f"architecture {architecture['model_type']!r} has no field {', '.join(sorted(unknown))}")
    # A family's default special ids belong to its own tokenizer and may lie beyond this vocabulary.
    ids = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id", None) for role in _ROLES}
    special = {name: value for name, value in ids.items() if hasattr(known, name)}
    return AutoConfig.for_model(architecture["model_type"], **{"vocab_size": len(tokenizer), **special, **fields})


def write_checkpoint(model: "nn.Module", tokenizer_folder: str | Path, folder: str | Path) -> None:
    """Config, safetensors and the tokenizer's files in one folder that is either whole or absent."""
    from transformers.utils import logging

    target = Path(folder)
    temporary = target.with_name(f"tmp-{target.name}-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(tokenizer_folder, temporary, ignore=lambda _, names: [n for n in names if n.startswith(".")])
    logging.disable_progress_bar()
    model.save_pretrained(str(temporary))  # type: ignore[operator]
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
