"""One checkpoint folder -> a model in eval mode with frozen parameters, or one line that says what is wrong.

Loading is transformers' own; which defects are refused is our choice (keys, shapes, dtype, non-finite values).
"""

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrace.checkpoints.classes import PERCEIVED, stored_class
from isotrace.checkpoints.own_code import code_options, refused, wants_code
from isotrace.errors import ConfigError, DataError

if TYPE_CHECKING:
    from torch import nn

AUTO_CLASSES = {"clm": "AutoModelForCausalLM", "mlm": "AutoModelForMaskedLM"}
DENOISING = "AutoModelForSeq2SeqLM"
"""The class for mlm of an encoder-decoder, whose decoder predicts what is masked."""
DTYPES = ("float32", "bfloat16")
_SHOWN = 4

ALLOWED_KEYS = (
    r"(^|\.)(inv_freq|original_inv_freq)$",
    r"(^|\.)attention\.(masked_)?bias$",
    r"(^|\.)attn\.(masked_)?bias$",
    r"(^|\.)position_ids$",
)
"""Buffers that old files store and that the code computes: neither their absence nor their presence matters."""


def load_model(
    folder: str | Path,
    objective: str,
    *,
    dtype: str = "float32",
    config: str | None = None,
    remote_code: str | None = None,
) -> "nn.Module":
    """Load weights offline, in one compute dtype whatever the file's own.

    folder: a checkpoint's, or a .gguf file, whose quantised weights are read as numbers.
    objective: clm | mlm, or image | audio of what reads no text. dtype: float32 | bfloat16. config: the folder of the
    config.json, None for its own.
    remote_code: the commit whose Python code, fetched into the folder, may run; None runs none.
    Returns the model in eval mode, parameters frozen.
    ConfigError for an impossible request; DataError, naming the folder, for missing, unexpected or mismatched
    keys, a file that cannot be read, and non-finite weights.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"compute dtype {dtype!r}: allowed are {', '.join(DTYPES)}; float16 overflows")
    if objective not in (known := (*AUTO_CLASSES, *PERCEIVED)):
        raise ConfigError(f"objective {objective!r}: allowed are {', '.join(known)}")
    model, info = _from_pretrained(Path(folder), objective, dtype, config, code_options(Path(folder), remote_code))
    _check_keys(folder, model, info)
    _check_finite(folder, model)
    model.eval()  # a model in train mode drops out, and two captures differ
    model.requires_grad_(False)
    return model


def auto_class(objective: str, config: Any) -> str:
    """Name of the transformers class that has the objective's loss, or that a model of images or audio names itself."""
    if objective in PERCEIVED:
        return stored_class(config)
    return DENOISING if objective == "mlm" and config.is_encoder_decoder else AUTO_CLASSES[objective]


def _from_pretrained(
    folder: Path, objective: str, dtype: str, config_folder: str | None, code: dict[str, Any]
) -> tuple["nn.Module", dict[str, Any]]:
    require_checkpoint(folder, config=config_folder)
    # A folder with .bin only must not send a conversion request to the hub.
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
    import torch
    import transformers

    name = AUTO_CLASSES.get(objective, "AutoModel")
    where, given = {"pretrained_model_name_or_path": str(folder)}, {}
    try:
        with _quiet():
            if is_gguf(folder):
                where = {"pretrained_model_name_or_path": str(folder.parent), "gguf_file": folder.name}
                # Otherwise weights stay in their quantised blocks wherever the package `kernels` is installed.
                given = {"quantization_config": transformers.GgufConfig(dequantize=True)}
            described = {"pretrained_model_name_or_path": config_folder} if config_folder else where
            config = transformers.AutoConfig.from_pretrained(**described, local_files_only=True, **code)
            name = auto_class(objective, config)
            given |= {"config": config} if config_folder else {}
            model, info = getattr(transformers, name).from_pretrained(
                **where,
                **given,
                **code,
                dtype=getattr(torch, dtype),
                local_files_only=True,
                weights_only=True,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # refused below, where every key can be named
            )
    except Exception as error:  # transformers, safetensors, torch and json raise many kinds for a damaged folder
        if wants_code(error):
            raise refused(folder) from error
        raise DataError(f"{folder}: cannot be loaded as {name}: {_first_line(error)}") from error
    return model, info


def require_checkpoint(folder: Path, *, config: str | None = None) -> None:
    """DataError unless the folder has a weight file and it, or the folder ``config``, a config; or is a .gguf file."""
    if is_gguf(folder):
        return
    if not folder.is_dir():
        raise DataError(f"{folder}: no such checkpoint folder")
    if not (Path(config or folder) / "config.json").is_file():
        raise DataError(f"{config or folder}: no config.json; half-written, or not a checkpoint")
    if not weight_files(folder):
        raise DataError(f"{folder}: no weights (*.safetensors or pytorch_model*.bin); half-written checkpoint")


def is_gguf(path: Path) -> bool:
    """Whether a checkpoint is one GGUF file rather than a folder."""
    return path.suffix == ".gguf" and path.is_file()


def weight_files(folder: Path) -> list[Path]:
    """Weight files by name; safetensors are preferred, so ``.bin`` are listed only without them."""
    return sorted(folder.glob("*.safetensors")) or sorted(folder.glob("pytorch_model*.bin"))


def _quiet() -> Any:
    """Transformers' loading table says in forty lines what one error says in one."""
    from contextlib import contextmanager

    from transformers.utils import logging

    @contextmanager
    def quiet() -> Any:
        before = logging.get_verbosity()
        logging.set_verbosity_error()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            logging.set_verbosity(before)

    return quiet()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].strip() if lines else type(error).__name__


def _check_keys(folder: str | Path, model: "nn.Module", info: dict[str, Any]) -> None:
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    allowed = re.compile("|".join(ALLOWED_KEYS))
    missing = sorted(key for key in info["missing_keys"] if key not in tied and not allowed.search(key))
    unexpected = sorted(key for key in info["unexpected_keys"] if not allowed.search(key))
    mismatched = sorted(f"{key} {tuple(file)} for {tuple(model_)}" for key, file, model_ in info["mismatched_keys"])
    problems = [
        f"{len(keys)} {kind} ({', '.join(keys[:_SHOWN])}{', …' if len(keys) > _SHOWN else ''})"
        for kind, keys in (("missing", missing), ("unexpected", unexpected), ("mismatched", mismatched))
        if keys
    ]
    problems += [str(message).splitlines()[0] for message in info["error_msgs"]]
    if problems:
        raise DataError(f"{folder}: weights do not fit {type(model).__name__}: {'; '.join(problems)}")


def _check_finite(folder: str | Path, model: "nn.Module") -> None:
    bad = [name for name, tensor in model.named_parameters() if not bool(tensor.isfinite().all())]
    if bad:
        raise DataError(f"{folder}: {len(bad)} tensors are not finite ({', '.join(bad[:_SHOWN])})")


def input_embedding_name(model: "nn.Module") -> str:
    """The module name of the input embedding, e.g. ``gpt_neox.embed_in``; asked of the model, never guessed."""
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    names: list[str] = [name for name, module in model.named_modules() if module is embedding]
    return names[0]
