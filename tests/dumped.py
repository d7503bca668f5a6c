"""Dumps of vectors with a known make-up, written in any format, and configs that read them."""

from pathlib import Path
from typing import Any

import numpy as np

SITES, SEQUENCES, LENGTH, WIDTH, IDS = 2, 30, 20, 12, 40
NAMES = {"activations": "acts", "gradients": "grads", "token_id": "ids", "sequence": "seq", "position": "pos"}
NAMES |= {"target_id": "next", "loss": "nats"}
FORMATS = ("", ".npz", ".safetensors", ".zarr")


def arrays(step: int = 0, *, seed: int = 0) -> dict[str, np.ndarray]:
    """Arrays of one checkpoint under the names of ``NAMES``; what is read is the same at every step and seed."""
    text, rng = np.random.default_rng(7), np.random.default_rng([seed, step])
    n = SEQUENCES * LENGTH
    weights = 1 / np.arange(1, IDS + 1)
    ids = text.choice(IDS, n, p=weights / weights.sum())
    axes = np.linalg.qr(text.standard_normal((WIDTH, 3)))[0]
    signal = rng.standard_normal((2, SITES, n, 3)) * (1 + step / 20) @ axes.T
    rows = (signal + 0.3 * rng.standard_normal((2, SITES, n, WIDTH))).astype(np.float32)
    position = np.tile(np.arange(LENGTH), SEQUENCES)
    following = np.where(position < LENGTH - 1, np.roll(ids, -1), -1)
    return {
        "acts": rows[0],
        "grads": rows[1],
        "ids": ids,
        "seq": np.repeat(np.arange(SEQUENCES), LENGTH),
        "pos": position,
        "next": following,
        "nats": rng.exponential(4, n).astype(np.float32),
    }


def write(path: Path, content: dict[str, np.ndarray]) -> Path:
    """A dump in the format that the ending of the path says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez(path, **content)
    elif path.suffix == ".safetensors":
        from safetensors.numpy import save_file

        save_file(content, path)
    elif path.suffix == ".zarr":
        import zarr

        group = zarr.open_group(path, mode="w")
        for name, values in content.items():
            group.create_array(name, data=values)
    else:
        path.mkdir()
        for name, values in content.items():
            np.save(path / f"{name}.npy", values)
    return path


def model(path: str, /, **edits: Any) -> dict[str, Any]:
    """The config of a model whose dumps lie at ``path``; edits of its source."""
    return {"objective": "clm", "source": {"kind": "vectors", "path": path, "arrays": dict(NAMES), **edits}}


def bare(path: str) -> dict[str, Any]:
    """The config of one whose dumps hold activations and nothing else."""
    source = {"kind": "vectors", "path": path, "arrays": {"activations": "acts"}, "rows_independent": True}
    return {"objective": "none", "source": source}


def config(models: dict[str, Any]) -> dict[str, Any]:
    """A small study of dumped vectors."""
    return {
        "study": "dumped",
        "models": models,
        "buckets": {"number": 2},
        "sample": {"rows_per_bucket": {"fit": 100, "eval": 120}},
        "bases": {"ranks": [2, 3]},
        "energy": {"draws": {"complement": 99, "ambient": 99, "variance_weighted": 39}},
        "isotropy": {"ranks": [3], "draws": 99, "draws_corrected": 39},
        "geometry": {"metrics": ["mean_cosine", "mean_norm", "zero_rows", "loss", "displacement_in_tangent"]},
        "frequency": {"occurrences": 2, "min_types": 5, "resamples": 50},
        "dynamics": {"rank": 3},
        "execution": {"batch_buckets": True},
    }
