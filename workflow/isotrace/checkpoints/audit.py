"""What one checkpoint holds: whether it loads, a digest of every tensor, sizes, and a sketch for distances.

The sketch is a random-sign projection (Achlioptas 2003), so that checkpoints compare without being loaded together.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrace.checkpoints.load import input_embedding_name, load_model, require_checkpoint, weight_files
from isotrace.errors import DataError
from isotrace.seeding import generator

if TYPE_CHECKING:
    from torch import nn

SKETCH_SIZE = 64
_SKETCH_SEED = 0
_CHUNK = SKETCH_SIZE * 2**16
_BESIDE_WEIGHTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "*.safetensors.index.json")


def audit_checkpoint(folder: str | Path, spec: dict[str, Any]) -> dict[str, Any]:
    """One checkpoint's part of the lock; a defect ends in ``status: broken`` and its reason, never in an exception.

    spec: ``id``, ``step``, ``tokens_seen`` (or None), ``objective`` (clm | mlm), ``source`` ({repo | path,
    revision, subfolder, commit}, as configured). Returns these with status (ok | broken), reason, files
    {name: sha256}, tensor_digests {name: sha256}, tensors_digest, constant_tensors, dtype (of the file), sketch,
    norm, width, layers, embedding_rows, context, input_embedding; empty or None where the checkpoint is broken.
    """
    path = Path(folder)
    head = {name: spec[name] for name in ("id", "step", "tokens_seen", "source")}
    files = {file.name: _file_digest(file) for file in _files(path)}
    try:
        require_checkpoint(path)
        dtype = stored_dtype(path)
        found = _describe(load_model(path, spec["objective"]))
    except DataError as error:
        return {**head, "status": "broken", "reason": str(error), "files": files, **_NOTHING}
    return {**head, "status": "ok", "reason": "", "files": files, "dtype": dtype, **found}


_NOTHING: dict[str, Any] = {
    "dtype": None,
    "tensors_digest": None,
    "tensor_digests": {},
    "constant_tensors": [],
    "sketch": [],
    "norm": None,
    "width": None,
    "layers": None,
    "embedding_rows": None,
    "context": None,
    "input_embedding": None,
}


def _files(folder: Path) -> list[Path]:
    beside = [file for pattern in _BESIDE_WEIGHTS for file in sorted(folder.glob(pattern))]
    return sorted({*weight_files(folder), *beside})


def _file_digest(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def stored_dtype(folder: Path) -> str:
    """The dtype of most tensors in the folder's safetensors headers, e.g. ``F32``, ``BF16``; else the config's."""
    counts: Counter[str] = Counter()
    for file in folder.glob("*.safetensors"):
        counts.update(_header_dtypes(file))
    if counts:
        return max(sorted(counts), key=lambda name: counts[name])
    try:
        config = json.loads((folder / "config.json").read_text())
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: config.json cannot be read ({error})") from error
    return str(config.get("dtype") or config.get("torch_dtype") or "unknown")


def _header_dtypes(file: Path) -> list[str]:
    try:
        with file.open("rb") as handle:
            header = json.loads(handle.read(int.from_bytes(handle.read(8), "little")))
    except (OSError, ValueError, MemoryError, OverflowError) as error:
        raise DataError(f"{file}: truncated or not a safetensors file") from error
    return [entry["dtype"] for name, entry in header.items() if name != "__metadata__"]


def _describe(model: "nn.Module") -> dict[str, Any]:
    """Digests, sketch and sizes of a loaded model; tied tensors count once, under their first name."""
    digests, constant, sketch, squares = {}, [], np.zeros(SKETCH_SIZE), 0.0
    for name, tensor in sorted(_tensors(model).items()):
        values = tensor.detach().numpy() + 0.0  # -0.0 becomes 0.0: equal weights have equal bytes
        flat = values.ravel()
        digests[name] = _array_digest(values)
        if flat.size and np.all(flat == flat[0]):
            constant.append(name)
        sketch += _project(name, flat)
        squares += float(np.square(flat, dtype=np.float64).sum())
    config: Any = model.config
    return {
        "tensor_digests": digests,
        "tensors_digest": hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest(),
        "constant_tensors": constant,
        "sketch": [float(value) for value in sketch],
        "norm": float(np.sqrt(squares)),
        "width": int(config.hidden_size),
        "layers": int(config.num_hidden_layers),
        "embedding_rows": int(model.get_input_embeddings().weight.shape[0]),  # type: ignore[operator]
        "context": getattr(config, "max_position_embeddings", None),
        "input_embedding": input_embedding_name(model),
    }


def _tensors(model: "nn.Module") -> dict[str, Any]:
    """Parameters and the buffers that a file stores, each storage once."""
    stored = set(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in stored}
    return {**dict(model.named_parameters()), **{n: b.float() for n, b in buffers.items()}}


def _array_digest(values: "np.ndarray[Any, Any]") -> str:
    digest = hashlib.sha256(f"{values.dtype.str}{values.shape}".encode())
    digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _project(name: str, flat: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """Random signs, then sums over every 64th entry: E |S(a - b)|^2 = |a - b|^2; the same signs a name."""
    rng = generator(_SKETCH_SEED, "sketch", name)
    total = np.zeros(SKETCH_SIZE)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        signs = rng.integers(0, 2, part.size, dtype=np.int8) * 2 - 1
        padded = np.zeros(-(-part.size // SKETCH_SIZE) * SKETCH_SIZE)
        padded[: part.size] = part * signs
        total += padded.reshape(-1, SKETCH_SIZE).sum(axis=0)
    return total
