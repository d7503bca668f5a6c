"""What a model is given of images, sounds or characters: which pieces, and the coordinates of what they consist of.

Pieces are dealt to fit and eval and drawn as sequences of text are, by the seeded hash (our choice).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.buckets import NONE
from isotrace.corpus.documents import read_texts
from isotrace.corpus.tokens import EVAL, FIT, split_of
from isotrace.errors import DataError
from isotrace.perception.characters import begins, sequences_of
from isotrace.perception.energy import quantile_buckets
from isotrace.perception.masks import Hidden
from isotrace.perception.pieces import pieces_of
from isotrace.perception.processor import Processor
from isotrace.perception.tokens import Seen
from isotrace.seeding import generator
from isotrace.vectors.contents import Coordinates


@dataclass(frozen=True)
class Given:
    """Pieces as the model reads them: which of the corpus (p,), their split (p,), and what is read.

    counts: of ids in all of the text (V,), empty where there are none."""

    sequence: NDArray[np.int64]
    split: NDArray[np.int8]
    name: str
    values: NDArray[Any]
    mask: NDArray[np.bool_]
    counts: NDArray[np.int64]

    @property
    def digest(self) -> str:
        """Of what the model reads."""
        return hashlib.sha256(f"{self.name}{self.values.shape}".encode() + self.values.tobytes()).hexdigest()


def given(processor: Path, spec: Mapping[str, Any], documents: Path | None) -> Given:
    """Pieces of either split, as many as ``sequences`` allows, drawn by the seed; DataError where a split has none.

    documents: the text, where characters of it are read.
    """
    if documents is not None:
        ids = sequences_of(read_texts(documents), spec["length"])
        sequence, split = _drawn(len(ids), spec)
        mask = np.ones((len(sequence), ids.shape[1]), np.bool_)
        return Given(sequence, split, "input_ids", ids[sequence], mask, np.bincount(ids.ravel()).astype(np.int64))
    reader = Processor(processor, spec["task"])
    pieces = pieces_of(spec["corpus"], rate=reader.rate, seed=spec["seed"])
    sequence, split = _drawn(len(pieces), spec)
    name, values, mask = reader.read([pieces[int(i)] for i in sequence])
    return Given(sequence, split, name, values, mask, np.zeros(0, np.int64))


def _drawn(number: int, spec: Mapping[str, Any]) -> tuple[NDArray[np.int64], NDArray[np.int8]]:
    """Which of so many pieces are read, rising, and their split."""
    split = split_of(range(number), spec["seed"], spec["eval_fraction"])
    taken = []
    for part, value in (("fit", FIT), ("eval", EVAL)):
        there = np.flatnonzero(split == value)
        drawn = generator(spec["seed"], "sequences", part).permutation(there.size)[: spec["sequences"][part]]
        taken.append(there[drawn])
    if min(map(len, taken)) == 0:
        raise DataError(f"{number} images, clips or sequences leave fit or eval empty; add files, or cut them smaller")
    sequence = np.sort(np.concatenate(taken)).astype(np.int64)
    return sequence, split[sequence]


def characters_of(read: Given, rate: int) -> Coordinates:
    """Coordinates of every character at which a molecule of ``rate`` characters begins."""
    at = begins(read.values.shape[1], rate)
    n = len(read.sequence) * len(at)
    return Coordinates(
        token_id=read.values[:, at].ravel().astype(np.int64),
        sequence=np.repeat(read.sequence, len(at)),
        position=np.tile(at, len(read.sequence)).astype(np.int64),
        target_id=np.full(n, -1, np.int64),
        split=np.repeat(read.split, len(at)).astype(np.int64),
        loss=np.full(n, np.nan, np.float32),
        positions_known=True,
        masked=np.zeros(n, np.bool_),
    )


def bucket_of_positions(read: Given, tokens: Seen, bucket: NDArray[np.int16], positions: int) -> NDArray[np.int16]:
    """The bucket of every position of a stream, (p, positions); NONE before the patches and beyond a piece's end.

    bucket: of every real patch or frame, as ``coordinates_of`` gives it.
    """
    found = np.full((len(read.sequence), positions), NONE, np.int16)
    piece, position = np.nonzero(tokens.real)
    found[piece, position + tokens.offset] = bucket
    return found


def coordinates_of(
    read: Given, tokens: Seen, spec: Mapping[str, Any], hidden: Hidden
) -> tuple[Coordinates, NDArray[np.int16]]:
    """Coordinates and bucket of every real patch or frame; masked is what is hidden."""
    piece, position = np.nonzero(tokens.real)
    unknown = np.full(len(piece), -1, np.int64)
    energy = tokens.energy[piece, position]
    bucket = quantile_buckets(energy, len(spec["names"])) if spec["energy"] else np.zeros(len(piece), np.int16)
    known = Coordinates(
        token_id=unknown,
        sequence=read.sequence[piece],
        position=position.astype(np.int64),
        target_id=unknown,
        split=read.split[piece].astype(np.int64),
        loss=np.full(len(piece), np.nan, np.float32),
        positions_known=True,
        masked=hidden.at[piece, position],
    )
    return known, bucket
