"""What an audit says of a checkpoint or dump that could not be read, and what every store says of its checkpoint."""

from typing import Any

UNREAD: dict[str, Any] = {
    "dtype": None,
    "dtypes": {},
    "head_differs": False,
    "tensors_digest": None,
    "tensor_digests": {},
    "constant_tensors": [],
    "sketch": [],
    "matrix_sketch": "",
    "norm": None,
    "width": None,
    "layers": None,
    "embedding_rows": None,
    "context": None,
    "input_embedding": None,
}


def captured_from(audit: dict[str, Any], spec: dict[str, Any], **how: str) -> dict[str, Any]:
    """Attributes of the stores of a checkpoint: which it is, by its audit, and ``how`` they were made."""
    named = {name: spec[name] for name in ("model", "checkpoint", "objective")}
    seen = {name: audit[name] for name in ("step", "tokens_seen", "tensors_digest")}
    return named | seen | {"source_dtype": audit["dtype"]} | how
