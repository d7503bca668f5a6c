"""A GGUF file as an ordinary checkpoint folder of float32 weights, by transformers' own reader.

Its header, and so its family, comes from llama.cpp; families that transformers does not map are refused by name.
"""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isotrace.checkpoints.initialise import described, write_checkpoint
from isotrace.checkpoints.load import load_model
from isotrace.errors import ConfigError, DataError
from isotrace.filehash import file_sha256

_PACKAGES = ("gguf", "accelerate")


def dequantise(file: Path, tokenizer_folder: Path | None, objective: str, folder: Path) -> dict[str, Any]:
    """Write config, float32 safetensors and tokenizer; ``{file: its name, sha256, model_type, parameters}``.

    tokenizer_folder: None takes the tokenizer that the file holds. ConfigError where a package is not installed;
    DataError for a file that cannot be read, or not wholly, with keys missing or non-finite weights.
    """
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigError(f"{file}: a GGUF file needs {' and '.join(missing)}; pip install 'isotrace[gguf]'")
    model = load_model(file, objective)
    _check_whole(file, described(model)["parameters"])
    own = folder.with_name(f"tmp-{folder.name}-tokenizer")
    if tokenizer_folder is None:
        _tokenizer(file).save_pretrained(str(own))
    write_checkpoint(model, tokenizer_folder or own, folder)
    shutil.rmtree(own, ignore_errors=True)
    return {"file": file.name, "sha256": file_sha256(file), **described(model)}


def _check_whole(file: Path, parameters: int) -> None:
    """Transformers leaves out tensors that it has no name for, biases or rotary factors, without a word."""
    from gguf import GGUFReader

    stored = sum(int(tensor.n_elements) for tensor in GGUFReader(str(file)).tensors)
    if stored != parameters:
        raise DataError(
            f"{file}: it stores {stored} values and transformers reads {parameters} of them as parameters, so some "
            f"tensors have no place in its model; use the safetensors checkpoint"
        )


def _tokenizer(file: Path) -> Any:
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(
            str(file.parent), gguf_file=file.name, local_files_only=True, trust_remote_code=False
        )
    except Exception as error:  # each converter of a family raises its own kinds
        line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{file}: its tokenizer cannot be read ({line}); name a folder that has one") from error
