"""How rows are stored: float32, float16 with a power-of-two scale a row, or bfloat16 kept as float32 values.

Zarr knows no bfloat16, and gradients underflow float16 below 6e-8 (hence the scale); both formats are our choice.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating]
Float32 = NDArray[np.float32]
StoredDtype = Literal["float32", "float16", "bfloat16"]

_LARGEST_SCALE = 2.0**127


@dataclass(frozen=True)
class Encoding:
    """One of the three ways of storing; float32 and bfloat16 need no scale."""

    dtype: StoredDtype = "float32"

    @property
    def scaled(self) -> bool:
        """Whether an array ``NAME_scale`` (site, token) stands beside the stored one."""
        return self.dtype == "float16"

    @property
    def stored(self) -> np.dtype[np.floating]:
        """The type of the stored entries, as Zarr sees it."""
        return np.dtype("<f2" if self.scaled else "<f4")

    def encode(self, rows: Float32) -> tuple[Floats, Float32 | None]:
        """Stored entries of rows (..., d) float32 and, for float16, their scale (...)."""
        if self.dtype == "float32":
            return rows, None
        if self.dtype == "bfloat16":
            return _nearest_bfloat16(rows), None
        scale = _scale(rows)
        stored = (rows / scale[..., None]).astype(np.float16)
        if np.max(scale, initial=0) == _LARGEST_SCALE:  # 2 times that scale is no float32: take the number below 2
            stored = np.where(np.abs(stored) == 2, np.nextafter(stored, np.float16(0)), stored)
        return stored, scale


def decode(stored: Floats, scale: Float32 | None = None) -> Float32:
    """Rows (..., d) float32 from stored entries; scale (...) where the entries are float16."""
    if scale is None:
        return stored.astype(np.float32, copy=False)
    return stored.astype(np.float32) * scale[..., None]


def rounded(rows: Float32, dtype: StoredDtype) -> Float32:
    """Rows (..., d) as they will read back, so that moments can be taken of exactly what is kept."""
    return decode(*Encoding(dtype).encode(rows))


def relative_error(rows: Float32, stored: Floats, scale: Float32 | None) -> float:
    """Largest |x - x'| / |x| over the rows that are not zero; 0 without such a row."""
    exact = rows.astype(np.float64)
    length = np.linalg.norm(exact, axis=-1)
    off = np.linalg.norm(exact - decode(stored, scale), axis=-1)
    there = length > 0
    return float(np.max(off[there] / length[there], initial=0.0))


def _nearest_bfloat16(rows: Float32) -> Float32:
    """Round to the nearest bfloat16, ties to even, by the bits that it drops; NaN and infinities stay."""
    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32)
    kept = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    finite = (bits & np.uint32(0x7F800000)) != np.uint32(0x7F800000)
    # The carry of a NaN's payload could turn it into a number or flip its sign.
    return np.where(finite, kept & np.uint32(0xFFFF0000), bits).view(np.float32)


def _scale(rows: Float32) -> Float32:
    """Powers of two (...): at least the largest |entry| of a row, 1 for a row of zeros."""
    largest = np.max(np.abs(rows), axis=-1, initial=0.0)
    _, exponent = np.frexp(np.where(np.isfinite(largest), largest, 1))
    # 2^128 is no float32; entries up to 2 fit into float16 as well as entries up to 1.
    scale = np.ldexp(np.float32(1), np.minimum(exponent, 127)).astype(np.float32)
    return np.where(largest > 0, scale, np.float32(1))
