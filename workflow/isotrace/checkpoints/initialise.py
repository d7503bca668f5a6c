"""A model with random weights from an architecture and a seed, and its checkpoint folder, written atomically.

Initial values are each family's own in transformers; untrained models follow Godey et al. 2024.
"""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrace.checkpoints.classes import PERCEIVED, drawn_class
from isotrace.checkpoints.load import AUTO_CLASSES, auto_class
from isotrace.corpus.tokenizer import load_tokenizer
from isotrace.errors import ConfigError, DataError
from isotrace.perception.processor import write_processor
from isotrace.seeding import derived_seed

if TYPE_CHECKING:
    from torch import nn

_ROLES = ("pad", "bos", "eos", "cls", "sep", "mask")
_TOKENIZER = (
    "tokenizer*",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.*",
    "merges.txt",
    "*.model",
    "preprocessor_config.json",
)


def initialise(spec: dict[str, Any], tokenizer_folder: Path | None, shape: Path | None, folder: Path) -> dict[str, Any]:
    """Write one untrained checkpoint folder; returns ``{seed, model_type, parameters}`` (how many).

    spec: ``seed``, ``objective``, ``architecture`` (None: that of the config.json at ``shape``). A model of images or
    audio has a processor for a tokenizer; without a folder, a plain one of its sizes. Errors are those of
    `initial_model`.
    """
    perceived = spec["objective"] in PERCEIVED
    tokenizer = None if perceived else load_tokenizer(str(tokenizer_folder))
    model = initial_model(shape or spec["architecture"], spec["objective"], tokenizer, spec["seed"])
    own = perceived and tokenizer_folder is None
    write_checkpoint(model, tokenizer_folder, folder, processor=spec["objective"] if own else None)
    return {"seed": spec["seed"], **described(model)}


def described(model: "nn.Module") -> dict[str, Any]:
    """``{model_type, parameters}``: tied ones count once."""
    config: Any = model.config
    return {"model_type": config.model_type, "parameters": sum(p.numel() for p in model.parameters())}


def initial_model(architecture: dict[str, Any] | Path, objective: str, tokenizer: Any, seed: int) -> "nn.Module":
    """The model at step 0, the same float32 weights for the same seed in every process; in train mode.

    architecture: ``model_type`` and fields of that family's config, whose ``vocab_size`` and special ids come from
    the tokenizer (None: there is none) unless given; or the path of a config.json, taken as it is. objective: clm |
    mlm, or image | audio, whose models get a head that classifies. ConfigError for an unknown type, field or
    objective; DataError for a file that is no config.
    """
    import torch
    import transformers

    config = _stored_config(architecture) if isinstance(architecture, Path) else _config(architecture, tokenizer)
    if objective not in (known := (*AUTO_CLASSES, *PERCEIVED)):
        raise ConfigError(f"objective {objective!r}: allowed are {', '.join(known)}")
    torch.manual_seed(derived_seed(seed, "initial"))
    try:
        if objective in PERCEIVED:
            model = drawn_class(objective, config)._from_config(config, dtype=torch.float32)
        else:
            model = getattr(transformers, auto_class(objective, config)).from_config(config, dtype=torch.float32)
    except ValueError as error:
        line = str(error).splitlines()[0]
        raise ConfigError(f"architecture {config.model_type!r} with objective {objective!r}: {line}") from error
    untrained: nn.Module = model.train()
    return untrained


def _stored_config(file: Path) -> Any:
    from transformers import AutoConfig

    try:
        return AutoConfig.from_pretrained(str(file.parent), local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{file}: no config that transformers reads ({str(error).splitlines()[0]})") from error


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
    if tokenizer is None:
        return AutoConfig.for_model(architecture["model_type"], **fields)
    # A family's default special ids belong to its own tokenizer and may lie beyond this vocabulary.
    ids = {f"{role}_token_id": getattr(tokenizer, f"{role}_token_id", None) for role in _ROLES}
    special = {name: value for name, value in ids.items() if hasattr(known, name)}
    made = AutoConfig.for_model(architecture["model_type"], **{"vocab_size": len(tokenizer), **special, **fields})
    if made.is_encoder_decoder and getattr(made, "decoder_start_token_id", None) is None:
        made.decoder_start_token_id = made.pad_token_id  # as T5's decoder starts; its config class has no default
    return made


def write_checkpoint(
    model: "nn.Module", tokenizer_folder: str | Path | None, folder: str | Path, *, processor: str | None = None
) -> None:
    """Config, safetensors and the tokenizer's files in one folder that is either whole or absent.

    Of the tokenizer's folder, which may be another checkpoint's, nothing else is copied. processor: image | audio, to
    write a plain processor of the model's sizes.
    """
    from transformers.utils import logging

    target = Path(folder)
    temporary = target.with_name(f"tmp-{target.name}-{os.getpid()}")
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir(parents=True)
    patterns = _TOKENIZER if tokenizer_folder else ()
    for file in sorted({file for pattern in patterns for file in Path(str(tokenizer_folder)).glob(pattern)}):
        shutil.copy2(file, temporary)
    if processor is not None:
        write_processor(model.config, processor, temporary)
    logging.disable_progress_bar()
    model.save_pretrained(str(temporary))  # type: ignore[operator]
    shutil.rmtree(target, ignore_errors=True)
    temporary.rename(target)
