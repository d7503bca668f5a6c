"""A small bucket, bases and a spec for tests of the energy table."""

from typing import Any

import numpy as np
import pandas as pd

from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import (
    energy_table,
)
from isotrace.geometry.rows import Bucket

SITES = ("embed", "block.0")
D, N = 16, 200
SPEC: dict[str, Any] = {
    "seed": 0,
    "ranks": [2, 4],
    "null_spaces": ["complement", "ambient", "variance_weighted"],
    "draws": {"complement": 199, "ambient": 199, "variance_weighted": 49},
    "centred": False,
    "resamples": 200,
    "confidence": 0.95,
    "min_rows": 32,
}


def bucket(gradients: np.ndarray | None = None, sequences: int = 25) -> Bucket:
    rng = np.random.default_rng(0)
    spread = np.arange(1, D + 1) ** -0.5
    activations = rng.standard_normal((2, N, D)) * spread + 5
    drawn = rng.standard_normal((2, N, D)) * spread**2 * 1e-4
    g = (drawn if gradients is None else gradients).astype(np.float32)
    ids = np.arange(N)
    return Bucket("b1", SITES, activations, g, ids, ids % sequences, ids, np.ones(N), np.zeros(N, bool))


def basis(kind: str = "fixed", method: str = "pca", vectors: np.ndarray | None = None) -> Basis:
    v = np.stack([np.eye(D)[:, :4]] * 2) if vectors is None else vectors
    return Basis(kind, method, SITES, v, np.ones((2, 4)), np.array([N, N]))


def table(b: Bucket, bases: list[Basis], **changes: Any) -> pd.DataFrame:
    variance = {s: np.cov(np.asarray(b.activations[i]), rowvar=False) for i, s in enumerate(b.sites)}
    return energy_table(b, bases, SPEC | changes, variance=variance)


def one(frame: pd.DataFrame, **where: Any) -> pd.Series:
    for column, value in where.items():
        frame = frame[frame[column] == value]
    assert len(frame) == 1
    return frame.iloc[0]
