"""Random-sign projections of weights, so that checkpoints compare without being loaded together.

Achlioptas 2003; two sizes of one projection: a short one of everything, a long one of the matrices alone.
"""

import base64
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.seeding import generator

SKETCH_SIZE = 64
MATRIX_SIZE = 1024
"""Sums kept of the matrices; a correlation estimated from them has a standard error of 1 / sqrt(1024) = 0.03."""
_SEED = 0
_CHUNK = MATRIX_SIZE * 2**12


class Sketch:
    """Adds tensors up: ``short`` (64,) of all entries, ``long`` (1024,) of entries of tensors with two or more axes.

    Biases and norms are left out of ``long``: untrained ones are alike in every model, whatever its seed.
    """

    def __init__(self) -> None:
        self.short, self.long = np.zeros(SKETCH_SIZE), np.zeros(MATRIX_SIZE)

    def add(self, name: str, values: NDArray[Any]) -> None:
        """One tensor; its signs depend on its name, so that checkpoints of a series share them."""
        part = _project(name, values.ravel())
        self.short += part.reshape(-1, SKETCH_SIZE).sum(axis=0)
        if values.ndim > 1:
            self.long += part


def _project(name: str, flat: NDArray[Any]) -> NDArray[np.float64]:
    """Random signs, then sums over every 1024th entry: E |S(a - b)|^2 = |a - b|^2."""
    rng = generator(_SEED, "sketch", name)
    total = np.zeros(MATRIX_SIZE)
    for start in range(0, flat.size, _CHUNK):
        part = flat[start : start + _CHUNK]
        signs = rng.integers(0, 2, part.size, dtype=np.int8) * 2 - 1
        padded = np.zeros(-(-part.size // MATRIX_SIZE) * MATRIX_SIZE)
        padded[: part.size] = part * signs
        total += padded.reshape(-1, MATRIX_SIZE).sum(axis=0)
    return total


def packed(values: NDArray[np.float64]) -> str:
    """Values as float32 in base64: a line of an audit and not a thousand."""
    return base64.b64encode(struct.pack(f"<{values.size}f", *values.tolist())).decode()
