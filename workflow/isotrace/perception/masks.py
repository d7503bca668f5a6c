"""What is hidden from a model that learns by filling in: patches of an image, spans of frames of a clip.

The share of patches is our choice, that of SimMIM (Xie et al. 2022; BEiT hides 0.4, Bao et al. 2022); spans and
distractors are those of wav2vec 2.0 (Baevski et al. 2020) by the model's own config. Drawn by (seed, piece) alone.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.seeding import generator

SHARE = {"beit": 0.4}
USUAL = 0.6
"""Share of patches that are hidden, of families not in ``SHARE``."""


@dataclass(frozen=True)
class Hidden:
    """Of p pieces: at (p, n), what is hidden; others (p, n, K), the frames that a hidden one is to be told from."""

    at: NDArray[np.bool_]
    others: NDArray[np.int64]

    def of(self, pieces: slice | NDArray[np.integer]) -> "Hidden":
        """Some of the pieces."""
        return Hidden(self.at[pieces], self.others[pieces])


def none_hidden(pieces: int, number: int) -> Hidden:
    """Nothing is hidden, of so many patches or frames a piece."""
    return Hidden(np.zeros((pieces, number), np.bool_), np.zeros((pieces, number, 0), np.int64))


def hidden_patches(config: Any, sequence: Iterable[int], patches: int, seed: int) -> Hidden:
    """The same number of patches of every image, at least one.

    DataError where the model has nothing to put in place of a patch, or fills in pieces of another size.
    """
    if config.model_type == "beit":
        if not config.use_mask_token:
            raise DataError("the model's config: use_mask_token is false, so no patch can be hidden; set it to true")
    elif config.encoder_stride != config.patch_size:
        stride, patch = config.encoder_stride, config.patch_size
        raise DataError(f"the model's config: encoder_stride is {stride} and patch_size {patch}; set them equal")
    number = max(1, round(SHARE.get(config.model_type, USUAL) * patches))
    at = np.stack([_patches(i, patches, number, seed) for i in sequence])
    return Hidden(at, np.zeros((*at.shape, 0), np.int64))


def _patches(piece: int, patches: int, number: int, seed: int) -> NDArray[np.bool_]:
    drawn = generator(seed, "hidden", piece).permutation(patches)
    return drawn < number


def hidden_frames(config: Any, sequence: Iterable[int], frames: int, seed: int) -> Hidden:
    """Spans of ``mask_time_length`` frames, ``mask_time_prob`` of the clip at most, and ``num_negatives`` distractors.

    Spans may overlap; at least ``mask_time_min_masks``, and one. DataError for clips that are no longer than a span,
    and where the model hides nothing by its own config.
    """
    if not config.apply_spec_augment:
        raise DataError("the model's config: apply_spec_augment is false, so no frame can be hidden; set it to true")
    if not config.mask_time_prob > 0:
        raise DataError("the model's config: mask_time_prob is 0, so no frame can be hidden; set it as in training")
    length = max(2, config.mask_time_length)  # a frame alone has nothing to be told from
    if frames <= length:
        raise DataError(f"clips of {frames} frames, and the model hides {length} in a row; raise corpora.NAME.seconds")
    spans = max(1, config.mask_time_min_masks, round(config.mask_time_prob * frames / length))
    spans = min(spans, frames - length + 1)
    drawn = [_spans(i, frames, length, spans, config.num_negatives, seed) for i in sequence]
    return Hidden(np.stack([at for at, _ in drawn]), np.stack([others for _, others in drawn]))


def _spans(
    piece: int, frames: int, length: int, spans: int, negatives: int, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Hidden frames (n,), and of each hidden one other hidden ones (n, K), drawn evenly; 0 of the rest."""
    random = generator(seed, "hidden", piece)
    starts = random.permutation(frames - length + 1)[:spans]
    at = np.zeros(frames, np.bool_)
    at[(starts[:, None] + np.arange(length)).ravel()] = True  # (spans, length) -> (spans*length,)
    where = np.flatnonzero(at)
    step = random.integers(1, where.size, size=(where.size, negatives))
    others = np.zeros((frames, negatives), np.int64)
    others[where] = where[(np.arange(where.size)[:, None] + step) % where.size]
    return at, others
