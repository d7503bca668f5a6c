"""The input embedding of a checkpoint, one tensor read from its files; the name was asked of the model in its audit.

Static token geometry follows Bernas et al. 2026.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError


def read_embedding(audit_path: Path) -> NDArray[np.float32]:
    """The (V, d) matrix of an audited checkpoint; DataError when no stored tensor has its name."""
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    folder, name = Path(audit["source"]["path"]), f"{audit['input_embedding']}.weight"
    for file in sorted(folder.glob("*.safetensors")):
        found = _read(file, name)
        if found is not None:
            return found
    return _from_model(folder, audit)


def _read(file: Path, name: str) -> NDArray[np.float32] | None:
    """The tensor of that name, or of that name without the base model's prefix, as some files are saved."""
    from safetensors import safe_open

    with safe_open(str(file), "numpy") as tensors:
        keys = set(tensors.keys())
        match = next((key for key in (name, name.split(".", 1)[-1]) if key in keys), None)
        if match is None:
            return None
        if tensors.get_slice(match).get_dtype() in ("F32", "F16", "F64"):
            return np.asarray(tensors.get_tensor(match), np.float32)
    with safe_open(str(file), "pt") as tensors:  # numpy has no bfloat16, and importing torch takes a second
        array: NDArray[np.float32] = tensors.get_tensor(match).float().numpy()
        return array


def _from_model(folder: Path, audit: dict[str, Any]) -> NDArray[np.float32]:
    """Through the loaded model, where files hold other names than the model."""
    from isotrace.checkpoints.load import load_model

    model = load_model(folder, audit["objective"], config=audit["config"], remote_code=audit["remote_code"])
    embedding = model.get_input_embeddings()  # type: ignore[operator]
    if embedding is None:
        raise DataError(f"{folder}: the model has no input embedding")
    array: NDArray[np.float32] = embedding.weight.detach().float().numpy()
    return array
