"""Config blocks for corpora that are no text: images, recordings, and sounds made here."""

from typing import Literal

from isotrace.settings.base import Block, key

_PATHS = "files or globs; `python:PACKAGE/path` is a file inside an installed Python package"
_SECONDS = "length of a clip; each is one sequence"


class Images(Block):
    """Pictures, for models with `modality: image`."""

    source: Literal["images"] = key(..., ".png, .jpg and what else Pillow opens")
    paths: list[str] = key(..., _PATHS, min_length=1)
    tiles: int = key(
        1, "cut each image into so many rows and columns, every piece an image of its own", unit="tiles", ge=1, le=32
    )


class Audio(Block):
    """Recordings, for models with `modality: audio`."""

    source: Literal["audio"] = key(..., ".wav; also .flac where the package soundfile is installed")
    paths: list[str] = key(..., _PATHS, min_length=1)
    seconds: float = key(2.0, f"{_SECONDS}; a shorter rest is left out", unit="seconds", gt=0)


class Tones(Block):
    """Sounds made from the study's seed: harmonics that glide and swell over noise, for `modality: audio`."""

    source: Literal["tones"] = key(..., "synthesised sounds, which need no file")
    clips: int = key(48, "how many", unit="clips", ge=4)
    seconds: float = key(2.0, _SECONDS, unit="seconds", gt=0)


MEDIA: dict[str, tuple[type[Block], ...]] = {"image": (Images,), "audio": (Audio, Tones)}
"""What models of each modality that is no text can read."""
