"""Images and clips as arrays, cut out of the files of a corpus or synthesised; each becomes one sequence.

How files are cut, and the make-up of synthesised sounds, are our choice.
"""

from collections.abc import Mapping, Sequence
from math import gcd
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.files import SourceFile, source_files
from isotrace.errors import DataError
from isotrace.seeding import generator

Piece = NDArray[Any]


def pieces_of(corpus: Mapping[str, Any], *, rate: int, seed: int) -> Sequence[Piece]:
    """Images (h, w, 3) uint8, opened when asked for, or clips (L,) float32 at ``rate`` Hz, by the corpus' ``source``.

    DataError for a file that cannot be read, and for recordings that hold no whole clip.
    """
    if corpus["source"] == "images":
        return Pictures(source_files(corpus["paths"]), corpus["tiles"])
    if corpus["source"] == "tones":
        return [tone(i, seconds=corpus["seconds"], rate=rate, seed=seed) for i in range(corpus["clips"])]
    files = source_files(corpus["paths"])
    clips = [clip for file in files for clip in _cut(recording(file.path, rate), round(corpus["seconds"] * rate))]
    if not clips:
        raise DataError(f"none of {len(files)} recordings is {corpus['seconds']} s long; lower the corpus' seconds")
    return clips


class Pictures(Sequence[Piece]):
    """Every tile of every file, file by file and row by row."""

    def __init__(self, files: Sequence[SourceFile], tiles: int) -> None:
        self._files, self._tiles = files, tiles

    def __len__(self) -> int:
        return len(self._files) * self._tiles**2

    @overload
    def __getitem__(self, index: int) -> Piece: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Piece]: ...

    def __getitem__(self, index: int | slice) -> Piece | Sequence[Piece]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        number, tile = divmod(range(len(self))[index], self._tiles**2)
        whole = picture(self._files[number].path)
        row, column = divmod(tile, self._tiles)
        h, w = (size // self._tiles for size in whole.shape[:2])
        if min(h, w) == 0:
            raise DataError(f"{self._files[number].name}: too small for {self._tiles} tiles a side")
        return whole[row * h : (row + 1) * h, column * w : (column + 1) * w]


def picture(file: Path) -> NDArray[np.uint8]:
    """An image (h, w, 3), whatever its mode; DataError where Pillow cannot read it."""
    from PIL import Image

    try:
        with Image.open(file) as image:
            return np.asarray(image.convert("RGB"))
    except (OSError, ValueError, SyntaxError) as error:  # SyntaxError: what Pillow raises for a broken PNG
        raise DataError(f"{file}: no image that Pillow reads ({error}); convert it or take it out") from error


def recording(file: Path, rate: int) -> NDArray[np.float32]:
    """Samples (L,) between -1 and 1, channels averaged, resampled to ``rate`` Hz; DataError where it cannot be read."""
    from scipy.signal import resample_poly

    own, samples = _wav(file) if file.suffix.lower() == ".wav" else _by_soundfile(file)
    mono = samples.mean(axis=1) if samples.ndim == 2 else samples
    if own != rate:
        shared = gcd(own, rate)
        mono = resample_poly(mono, rate // shared, own // shared)
    return mono.astype(np.float32)


def _wav(file: Path) -> tuple[int, NDArray[np.float64]]:
    from scipy.io import wavfile

    try:
        rate, samples = wavfile.read(file)
    except (OSError, ValueError) as error:
        raise DataError(f"{file}: no WAV that scipy reads ({error}); convert it or take it out") from error
    if samples.dtype.kind == "f":
        return rate, samples.astype(np.float64)
    middle = 128 if samples.dtype == np.uint8 else 0  # eight bits are stored about 128
    return rate, (samples.astype(np.float64) - middle) / 2.0 ** (8 * samples.dtype.itemsize - 1)


def _by_soundfile(file: Path) -> tuple[int, NDArray[np.float64]]:
    try:
        import soundfile
    except ImportError:
        raise DataError(f"{file}: only .wav is read without soundfile; pip install soundfile, or convert it") from None
    try:
        samples, rate = soundfile.read(file, dtype="float64")
    except (OSError, RuntimeError) as error:
        raise DataError(f"{file}: not readable by soundfile ({error})") from error
    return int(rate), samples


def _cut(samples: NDArray[np.float32], length: int) -> list[NDArray[np.float32]]:
    return [samples[start : start + length] for start in range(0, len(samples) - length + 1, length)]


def tone(number: int, *, seconds: float, rate: int, seed: int) -> NDArray[np.float32]:
    """A sound (L,): five harmonics of a gliding pitch whose loudness swells and falls to silence, over faint noise."""
    rng, t = generator(seed, "tone", number), np.arange(round(seconds * rate)) / rate
    start, end = rng.uniform(80, 400, 2)
    phase = 2 * np.pi * np.cumsum(start + (end - start) * t / seconds) / rate
    voice = sum(rng.uniform(0.2, 1) / k * np.sin(k * phase + rng.uniform(0, 2 * np.pi)) for k in range(1, 6))
    swell = np.sin(np.pi * rng.uniform(1, 4) * t / seconds + rng.uniform(0, np.pi)) ** 2
    sound = 0.2 * swell * voice + 0.002 * rng.standard_normal(len(t))
    return np.asarray(sound, np.float32)
