"""What a dump holds, as an audit of a checkpoint: files, digests of its arrays, or why it is broken.

The fields are those of ``checkpoints.audit``; what a model alone has is None. Vectors have no sketch: the distances
that weights keep from step to step mean nothing for them.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.checkpoints.unread import UNREAD
from isotrace.errors import DataError
from isotrace.filehash import file_sha256
from isotrace.vectors.contents import VECTORS, Arrays, Layout, coordinates, layout, site_rows
from isotrace.vectors.readers import Dump, open_dump

_DTYPES = {"float16": "F16", "float32": "F32", "float64": "F64", "bfloat16": "BF16"}


def audit_dump(path: str | Path, spec: dict[str, Any]) -> dict[str, Any]:
    """One dump's part of the lock; a defect ends in ``status: broken`` and its reason, never in an exception.

    spec: ``id``, ``step``, ``tokens_seen``, ``objective``, ``source``, ``arrays`` ({role: name or None}), ``sites``
    (names or None), ``first`` (the dump of the series whose sites and width are the right ones). tensor_digests are of
    the vectors at each site, so that a site copied from another step is named; tensors_digest is of all arrays, so
    that a duplicate is the same in everything.
    """
    head = {name: spec[name] for name in ("id", "step", "tokens_seen", "objective", "source")}
    head |= {"config": None, "remote_code": None, "saved_step": None, "files": {}}
    try:
        dump = open_dump(path)
        head["files"] = _files(dump, spec["arrays"])
        found = _describe(dump, spec)
    except DataError as error:
        return {**head, **UNREAD, "status": "broken", "reason": str(error)}
    return {**head, **UNREAD, "status": "ok", "reason": "", **found}


def _files(dump: Dump, arrays: Arrays) -> dict[str, str]:
    named = {name for name in arrays.values() if name in dump.names()}
    files = sorted({file for name in named if name for file in dump.files(name)})
    return {_below(file, dump.path): file_sha256(file) for file in files}


def _below(file: Path, path: Path) -> str:
    return file.name if file == path else file.relative_to(path).as_posix()


def _describe(dump: Dump, spec: dict[str, Any]) -> dict[str, Any]:
    arrays, of = spec["arrays"], layout(dump, spec["arrays"], spec["sites"])
    _same_as_first(of, spec)
    known = coordinates(dump, arrays, of.n)
    digests, constant = {}, []
    for role in (r for r in VECTORS if arrays[r]):
        for i, site in enumerate(of.sites):
            rows = site_rows(dump, arrays[role], of, i)
            digests[f"{role}.{site}"] = _digest(rows)
            if not np.any(rows - rows[0]):
                constant.append(f"{role}.{site}")
    every = digests | {n: _digest(v) for n, v in vars(known).items() if isinstance(v, np.ndarray)}
    dtypes = Counter(_DTYPES[dump.about(arrays[role])[1]] for role in VECTORS if arrays[role])
    return {
        "dtype": max(sorted(dtypes), key=lambda name: dtypes[name]),
        "dtypes": dict(sorted(dtypes.items())),
        "tensor_digests": digests,
        "constant_tensors": constant,
        "tensors_digest": hashlib.sha256(json.dumps(every, sort_keys=True).encode()).hexdigest(),
        "width": of.d,
        "layers": len(of.sites),
    }


def _same_as_first(of: Layout, spec: dict[str, Any]) -> None:
    """DataError where sites or width are not those of the series' first dump, as far as that can be read."""
    try:
        first = layout(open_dump(spec["first"]), spec["arrays"], spec["sites"])
    except DataError:
        return  # its own audit says what is wrong with it
    if (of.sites, of.d) != (first.sites, first.d):
        raise DataError(
            f"{len(of.sites)} sites of width {of.d}, but {len(first.sites)} of width {first.d} in {spec['first']}; "
            f"checkpoints of a series have the same"
        )


def _digest(values: NDArray[Any]) -> str:
    plain = np.ascontiguousarray(values + 0 if values.dtype.kind == "i" else values + values.dtype.type(0))
    digest = hashlib.sha256(f"{plain.dtype.str}{plain.shape}".encode())
    digest.update(plain.data)
    return digest.hexdigest()
