"""A small sealed store for tests."""

from pathlib import Path

import numpy as np

from isotrace.store import create, put

MAKING = {"params_digest": "p", "code_digest": "c", "versions": {}}
ROWS = np.arange(2 * 5 * 3, dtype=np.float32).reshape(2, 5, 3)


def write(manifest: Path, rows: np.ndarray = ROWS, attributes: dict | None = None, groups=("b0", "b1")) -> Path:
    with create(manifest, attributes or {}, MAKING) as root:
        for name in groups:
            group = root.create_group(name)
            put(group, "site", np.array(["embed", "block.0"]), ("site",))
            put(group, "token_id", np.arange(rows.shape[1], dtype=np.int32), ("token",), units="tokens")
            put(group, "activations", rows, ("site", "token", "feature"), coordinates="token_id")
    return manifest
