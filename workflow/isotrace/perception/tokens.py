"""Which positions of a model's stream are patches or frames of a piece, and how much energy each of them reads.

Positions before the patches (a class token, registers) are no patches and are never sampled (our choice).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.perception.energy import frame_energy, mel_energy, patch_energy

MOST_BEFORE = 16
"""Positions before the patches, at most; more means that a stream is not one of patches."""


@dataclass(frozen=True)
class Seen:
    """n patches or frames of each of p pieces: energy (p, n); real (p, n), whether one lies within its piece.

    offset: positions of the stream before the first.
    """

    energy: NDArray[np.float64]
    real: NDArray[np.bool_]
    offset: int


def seen(
    name: str, values: NDArray[np.floating], mask: NDArray[np.bool_], *, positions: int, patch: Any, where: str
) -> Seen:
    """Patches of images by the size ``patch``, or as many frames of a clip as the stream has ``positions``.

    name: the model's argument; values (p, ...); mask (p, L), which entries of the last axis are of the piece.
    DataError, naming ``where``, for a stream whose positions are not its patches.
    """
    if name == "pixel_values":
        size = (patch, patch) if isinstance(patch, int) else tuple(patch or ())
        if len(size) != 2:
            raise DataError(f"{where}: its config names no patch_size, so positions are not known to be patches")
        energy = patch_energy(values, (int(size[0]), int(size[1])))
        offset = positions - energy.shape[1]
        if not 0 <= offset <= MOST_BEFORE:
            raise DataError(
                f"{where}: {positions} positions of {energy.shape[1]} patches; they are not patches one by one"
            )
        return Seen(energy, np.ones(energy.shape, np.bool_), offset)
    energy = (mel_energy if values.ndim == 3 else frame_energy)(values, positions)
    edges = np.linspace(0, mask.shape[1], positions + 1).round().astype(np.intp)
    return Seen(energy, np.logical_and.reduceat(mask, edges[:-1], axis=1), 0)
