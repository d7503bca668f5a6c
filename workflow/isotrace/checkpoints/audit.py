"""What one checkpoint holds: whether it loads, a digest of every tensor, dtypes, sizes, and sketches for distances.

Which facts are taken down is our choice; what they say of a series is in ``defects``.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrace.checkpoints.classes import PERCEIVED
from isotrace.checkpoints.load import input_embedding_name, load_model, require_checkpoint, weight_files
from isotrace.checkpoints.sketch import Sketch, packed
from isotrace.checkpoints.unread import UNREAD
from isotrace.errors import DataError
from isotrace.filehash import file_sha256

if TYPE_CHECKING:
    from torch import nn

_BESIDE_WEIGHTS = ("config.json", "tokenizer.json", "tokenizer_config.json", "*.safetensors.index.json")


def audit_checkpoint(folder: str | Path, spec: dict[str, Any]) -> dict[str, Any]:
    """One checkpoint's part of the lock; a defect ends in ``status: broken`` and its reason, never in an exception.

    spec: ``id``, ``step``, ``tokens_seen`` (or None), ``objective`` (clm | mlm), ``config`` (the folder of the
    config.json, None for the checkpoint's own), ``remote_code`` (the commit whose code may run, or None), ``source``
    ({repo | path, revision, subfolder, commit}, as configured). Returns these but the objective, with status
    (ok | broken), reason, files {name: sha256}, tensor_digests {name: sha256}, tensors_digest, constant_tensors, dtype
    (of most stored tensors), dtypes {name: tensors} of floating ones, head_differs (a head that its config ties is
    stored and another), saved_step (of a trainer_state.json), sketch, matrix_sketch, norm, width, layers,
    embedding_rows, context, input_embedding;
    empty or None where the checkpoint is broken.
    """
    path, config = Path(folder), spec["config"]
    head = {name: spec[name] for name in ("id", "step", "tokens_seen", "config", "remote_code", "source")}
    head |= {"files": {file.name: file_sha256(file) for file in _files(path, config)}, "saved_step": _saved_step(path)}
    try:
        require_checkpoint(path, config=config)
        dtypes = stored_dtypes(path)
        model = load_model(path, spec["objective"], config=config, remote_code=spec["remote_code"])
        found = _describe(model, by_ids=spec["objective"] not in PERCEIVED)
    except DataError as error:
        return {**head, "status": "broken", "reason": str(error), **UNREAD}
    dtype = max(sorted(dtypes), key=lambda name: dtypes[name], default="unknown")
    return {**head, "status": "ok", "reason": "", "dtype": dtype, "dtypes": dict(sorted(dtypes.items())), **found}


def _files(folder: Path, config: str | None) -> list[Path]:
    beside = [file for pattern in _BESIDE_WEIGHTS for file in sorted(folder.glob(pattern))]
    elsewhere = [Path(config) / "config.json"] if config else []
    return sorted({*weight_files(folder), *beside, *(file for file in elsewhere if file.is_file())})


def _saved_step(folder: Path) -> int | None:
    """The step that a Trainer wrote beside its weights; None where there is none that can be read."""
    try:
        state = json.loads((folder / "trainer_state.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    step = state.get("global_step") if isinstance(state, dict) else None
    return step if isinstance(step, int) else None


def stored_dtypes(folder: Path) -> Counter[str]:
    """How many floating tensors a folder's weight files store in each dtype, named as safetensors does: F32, BF16."""
    counts: Counter[str] = Counter()
    for file in weight_files(folder):
        counts.update(_header_dtypes(file) if file.suffix == ".safetensors" else _pickled_dtypes(file))
    return counts


def _header_dtypes(file: Path) -> list[str]:
    try:
        with file.open("rb") as handle:
            header = json.loads(handle.read(int.from_bytes(handle.read(8), "little")))
    except (OSError, ValueError, MemoryError, OverflowError) as error:
        raise DataError(f"{file}: truncated or not a safetensors file") from error
    dtypes = [entry["dtype"] for name, entry in header.items() if name != "__metadata__"]
    return [dtype for dtype in dtypes if dtype.startswith(("F", "BF"))]


def _pickled_dtypes(file: Path) -> list[str]:
    """Of a .bin file, without reading its numbers and without running any code in it."""
    import torch

    names = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}
    try:
        state = torch.load(file, map_location="meta", weights_only=True)
    except Exception as error:  # pickle, zipfile and torch raise many kinds for a damaged file
        raise DataError(f"{file}: truncated, or more than tensors in it") from error
    tensors = [value for value in state.values() if isinstance(value, torch.Tensor)]
    return [names.get(t.dtype, str(t.dtype)) for t in tensors if t.is_floating_point()]


def _describe(model: "nn.Module", *, by_ids: bool) -> dict[str, Any]:
    """Digests, sketch and sizes of a loaded model, which reads ids or not; tied tensors count once, by first name."""
    digests, constant, sketch, squares = {}, [], Sketch(), 0.0
    for name, tensor in sorted(_tensors(model).items()):
        values = tensor.detach().numpy() + 0.0  # -0.0 becomes 0.0: equal weights have equal bytes
        flat = values.ravel()
        digests[name] = _array_digest(values)
        if flat.size and np.all(flat == flat[0]):
            constant.append(name)
        sketch.add(name, values)
        squares += float(np.square(flat, dtype=np.float64).sum())
    config: Any = model.config
    return {
        "tensor_digests": digests,
        "tensors_digest": hashlib.sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest(),
        "constant_tensors": constant,
        "sketch": sketch.short.tolist(),
        "matrix_sketch": packed(sketch.long),
        "head_differs": by_ids and _head_differs(model),
        "norm": float(np.sqrt(squares)),
        "width": int(config.hidden_size),
        "layers": int(config.num_hidden_layers),
        "embedding_rows": int(model.get_input_embeddings().weight.shape[0]) if by_ids else None,  # type: ignore[operator]
        "context": getattr(config, "max_position_embeddings", None),
        "input_embedding": input_embedding_name(model) if by_ids else None,
    }


def _head_differs(model: Any) -> bool:
    """A head of its own although the config ties it: transformers then keeps both, which the config does not say."""
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    if not getattr(model.config, "tie_word_embeddings", False) or getattr(head, "weight", None) is None:
        return False
    same_shape = head.weight.shape == embedding.weight.shape
    return bool(same_shape and head.weight.data_ptr() != embedding.weight.data_ptr())


def _tensors(model: "nn.Module") -> dict[str, Any]:
    """Parameters and the buffers that a file stores, each storage once."""
    stored = set(model.state_dict())
    buffers = {name: buffer for name, buffer in model.named_buffers() if name in stored}
    return {**dict(model.named_parameters()), **{n: b.float() for n, b in buffers.items()}}


def _array_digest(values: "np.ndarray[Any, Any]") -> str:
    digest = hashlib.sha256(f"{values.dtype.str}{values.shape}".encode())
    digest.update(np.ascontiguousarray(values).data)
    return digest.hexdigest()
