"""How much there is to see in a patch, or to hear in a frame: what buckets are made of where tokens have no ids.

Of images the variance of pixels about the patch's mean, of sound the mean square of samples; our choice.
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def patch_energy(pixels: NDArray[np.floating], patch: tuple[int, int]) -> Float:
    """Variance within each patch, averaged over channels, (p, N) row by row; pixels (p, channels, height, width).

    A last row or column of pixels that fills no patch is left out, as a model's patch embedding leaves it out.
    """
    p, channels, height, width = pixels.shape
    rows, columns = height // patch[0], width // patch[1]
    whole = np.asarray(pixels, np.float64)[:, :, : rows * patch[0], : columns * patch[1]]
    blocks = whole.reshape(p, channels, rows, patch[0], columns, patch[1])
    found: Float = blocks.var(axis=(3, 5)).mean(axis=1).reshape(p, rows * columns)
    return found


def frame_energy(samples: NDArray[np.floating], frames: int) -> Float:
    """Mean square of the samples under each of ``frames`` equal parts of a clip, (p, frames); samples (p, L)."""
    edges = np.linspace(0, samples.shape[1], frames + 1).round().astype(np.intp)
    sums = np.add.reduceat(np.square(samples, dtype=np.float64), edges[:-1], axis=1)
    return np.asarray(sums / np.diff(edges), np.float64)


def mel_energy(features: NDArray[np.floating], frames: int) -> Float:
    """Mean of the log-mel values under each of ``frames`` equal parts, (p, frames); features (p, mels, L)."""
    edges = np.linspace(0, features.shape[2], frames + 1).round().astype(np.intp)
    sums = np.add.reduceat(np.asarray(features, np.float64).mean(axis=1), edges[:-1], axis=1)
    return np.asarray(sums / np.diff(edges), np.float64)


def quantile_buckets(energy: Float, number: int) -> NDArray[np.int16]:
    """The bucket of each of n values, b0 the least energy; equal values are in one bucket."""
    edges = np.quantile(energy, np.arange(1, number) / number)
    return np.searchsorted(edges, energy, side="right").astype(np.int16)
