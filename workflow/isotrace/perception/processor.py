"""A model's own processor: from images or clips to the one tensor that the model reads.

Processors are transformers'; that of an untrained model resizes to its image size or cuts to its context (our choice).
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import ConfigError, DataError

FILE = "preprocessor_config.json"
_ARGUMENTS = ("pixel_values", "input_features", "input_values")
_MEL_HZ = 100
"""Frames a second that Whisper's extractor makes."""


class Processor:
    """The processor in a folder; DataError where there is none that transformers reads."""

    def __init__(self, folder: Path, modality: str) -> None:
        from transformers import AutoFeatureExtractor, AutoImageProcessor

        self._image = modality == "image"
        known = AutoImageProcessor if self._image else AutoFeatureExtractor
        if not (folder / FILE).is_file():
            raise DataError(f"{folder}: no {FILE}; copy the one of the model there, or name its folder as tokenizer")
        try:
            self._own: Any = known.from_pretrained(str(folder), local_files_only=True)
        except (OSError, ValueError, KeyError, TypeError, ImportError) as error:
            raise DataError(f"{folder / FILE}: not readable ({str(error).strip().splitlines()[0]})") from error

    @property
    def rate(self) -> int:
        """Samples a second that the model was made for; 0 for images."""
        return 0 if self._image else int(self._own.sampling_rate)

    def read(self, pieces: Sequence[NDArray[Any]]) -> tuple[str, NDArray[np.float32], NDArray[np.bool_]]:
        """The argument's name, its values (p, ...), and which entries of the last axis are of the piece, (p, L).

        DataError where pieces come out in different shapes, since a pass takes one.
        """
        read = [self._one(piece) for piece in pieces]
        name = next(name for name in _ARGUMENTS if name in read[0])
        values = [np.asarray(one[name][0], np.float32) for one in read]
        shapes = sorted({value.shape for value in values})
        if len(shapes) > 1:
            raise DataError(
                f"the processor makes {shapes[0]} of one piece and {shapes[1]} of another; a pass takes one"
            )
        whole = np.ones(values[0].shape[-1], np.bool_)
        real = [np.asarray(one["attention_mask"][0], np.bool_) if _masked(one, name) else whole for one in read]
        return name, np.stack(values), np.stack(real)

    def _one(self, piece: NDArray[Any]) -> dict[str, Any]:
        if self._image:
            from PIL import Image

            return dict(self._own(images=[Image.fromarray(piece)], return_tensors="np"))
        given = {"sampling_rate": self.rate, "return_tensors": "np", "return_attention_mask": True}
        return dict(self._own([piece], **given))


def _masked(read: dict[str, Any], name: str) -> bool:
    return name != "pixel_values" and "attention_mask" in read


def write_processor(config: Any, modality: str, folder: Path) -> None:
    """The processor of an untrained model, into its checkpoint's folder; ConfigError where its sizes allow none."""
    if modality == "image":
        sides = config.image_size if isinstance(config.image_size, list | tuple) else [config.image_size] * 2
        known = {"image_processor_type": "ViTImageProcessor", "size": {"height": sides[0], "width": sides[1]}}
        plain = {"do_resize": True, "do_rescale": True, "do_normalize": True, "resample": 2}
        scaled = {"image_mean": [0.5] * 3, "image_std": [0.5] * 3, "rescale_factor": 1 / 255}
        (folder / FILE).write_text(json.dumps(known | plain | scaled, indent=1), encoding="utf-8")
        return
    from transformers import Wav2Vec2FeatureExtractor, WhisperFeatureExtractor

    if config.model_type != "whisper":
        Wav2Vec2FeatureExtractor().save_pretrained(str(folder))
        return
    seconds, rest = divmod(2 * config.max_source_positions, _MEL_HZ)
    if rest:
        raise ConfigError(
            f"architecture.max_source_positions: {config.max_source_positions} is no multiple of 50 (1 s)"
        )
    WhisperFeatureExtractor(feature_size=config.num_mel_bins, chunk_length=seconds).save_pretrained(str(folder))
