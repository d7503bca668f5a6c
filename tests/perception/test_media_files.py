"""Files of images and sound: what is cut out of them, and one line for what cannot be read."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import wavfile

from isotrace.errors import DataError
from isotrace.perception.pieces import pieces_of, recording, tone


def test_tiles_cover_an_image_once(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (12, 18, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    Image.fromarray(pixels[:, :, 0]).save(tmp_path / "b.png")
    pieces = pieces_of({"source": "images", "paths": [f"{tmp_path}/*.png"], "tiles": 3}, rate=0, seed=0)
    assert len(pieces) == 18
    rows = [np.concatenate([pieces[3 * r + c] for c in range(3)], axis=1) for r in range(3)]
    assert np.array_equal(np.concatenate(rows), pixels)
    assert np.array_equal(pieces[9], np.repeat(pixels[:4, :6, :1], 3, axis=2))  # grey, as three channels alike


@pytest.mark.parametrize(
    ("dtype", "scale", "middle"), [("int16", 2**15, 0), ("int32", 2**31, 0), ("uint8", 2**7, 128), ("float32", 1, 0)]
)
def test_samples_of_any_width_lie_between_minus_one_and_one(
    dtype: str, scale: int, middle: int, tmp_path: Path
) -> None:
    wave = 0.5 * np.sin(2 * np.pi * 200 * np.arange(8000) / 8000)
    stored = (np.stack([wave, wave], axis=1) * scale + middle).astype(dtype)
    wavfile.write(tmp_path / "a.wav", 8000, stored)
    np.testing.assert_allclose(recording(tmp_path / "a.wav", 8000), wave, atol=0.01)
    faster = recording(tmp_path / "a.wav", 16000)
    assert len(faster) == 16000
    np.testing.assert_allclose(faster[200:-200:2], wave[100:-100], atol=0.02)


def test_a_rest_is_left_out_and_recordings_too_short_are_named(tmp_path: Path) -> None:
    samples = np.arange(2500, dtype=np.int16)
    wavfile.write(tmp_path / "a.wav", 1000, samples)
    corpus = {"source": "audio", "paths": [f"{tmp_path}/a.wav"], "seconds": 1.0}
    clips = pieces_of(corpus, rate=1000, seed=0)
    assert [len(clip) for clip in clips] == [1000, 1000]
    np.testing.assert_allclose(np.concatenate(clips) * 2**15, samples[:2000], atol=1e-3)
    with pytest.raises(DataError, match=r"none of 1 recordings is 3.0 s long"):
        pieces_of(corpus | {"seconds": 3.0}, rate=1000, seed=0)


@pytest.mark.parametrize(
    ("name", "source", "said"),
    [("a.png", "images", "no image that Pillow reads"), ("a.wav", "audio", "no WAV that scipy reads")],
)
def test_a_damaged_file_is_one_line(name: str, source: str, said: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"RIFF or not, this is neither")
    with pytest.raises(DataError, match=said):
        pieces_of({"source": source, "paths": [f"{tmp_path}/{name}"], "tiles": 1, "seconds": 1.0}, rate=8000, seed=0)[0]


@pytest.mark.skipif(importlib.util.find_spec("soundfile") is not None, reason="soundfile is installed and reads .flac")
def test_flac_without_its_reader_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.flac").write_bytes(b"fLaC")
    with pytest.raises(DataError, match="pip install soundfile, or convert it"):
        recording(tmp_path / "a.flac", 16000)


def test_tones_follow_from_the_seed() -> None:
    one = tone(3, seconds=0.5, rate=16000, seed=0)
    assert one.shape == (8000,)
    assert np.abs(one).max() < 1
    assert np.array_equal(one, tone(3, seconds=0.5, rate=16000, seed=0))
    assert not np.array_equal(one, tone(4, seconds=0.5, rate=16000, seed=0))
