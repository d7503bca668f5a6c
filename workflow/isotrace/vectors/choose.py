"""Which rows of a dump are kept, and in which bucket each is: as positions are sampled for a capture.

Uniform within bucket and split and fixed by the seed; the order of a dump's rows plays no part (our choice).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.buckets import NONE, bucket_of_ids
from isotrace.corpus.tokens import EVAL, FIT, split_of
from isotrace.errors import DataError
from isotrace.seeding import generator
from isotrace.vectors.contents import MOST_IDS, Coordinates
from isotrace.vectors.readers import read_npy

_SPLITS = (("fit", FIT), ("eval", EVAL))


@dataclass(frozen=True)
class Counts:
    """Counts of ids (V,), special ids 0, and those ids; of no ids where a dump has none."""

    counts: NDArray[np.int64]
    special_ids: tuple[int, ...]


@dataclass(frozen=True)
class Chosen:
    """m kept rows, by bucket and then by sequence and position: where in the dump, bucket, split, each (m,)."""

    rows: NDArray[np.intp]
    bucket: NDArray[np.int16]
    split: NDArray[np.int8]


def counts_of(known: Coordinates, path: str | None, special_ids: tuple[int, ...]) -> Counts:
    """Counts from a .npy file, else of the dump's own ids; DataError for a file of other shape or of too few ids."""
    ids = known.token_id
    if path is None:
        counts = np.bincount(ids[ids >= 0]).astype(np.int64)
    else:
        counts = _read(Path(path))
        if ids.max() >= counts.size:
            raise DataError(f"{path}: counts of {counts.size} ids, but the dump holds id {ids.max()}")
    counts[[i for i in special_ids if i < counts.size]] = 0
    return Counts(counts, special_ids)


def _read(file: Path) -> NDArray[np.int64]:
    counts = read_npy(file)
    if counts.ndim != 1 or counts.dtype.kind not in "iu" or not 0 < counts.size <= MOST_IDS or counts.min() < 0:
        raise DataError(
            f"{file}: {counts.dtype} of shape {counts.shape}; counts by id are integers of 0 or more, (id,)"
        )
    return np.array(counts, np.int64)


def choose(
    known: Coordinates, counts: Counts, spec: Mapping[str, Any], *, bucket: NDArray[np.int16] | None = None
) -> Chosen:
    """Rows of every bucket and split, as many as ``rows_per_bucket`` allows; special ids are left out.

    spec: ``seed``, ``eval_fraction``, ``names`` (of the buckets), ``buckets`` ({kind, number, edges, by}; {} for one
    bucket of everything), ``objective``, ``exclude_first`` (position 0, where positions are known),
    ``rows_per_bucket``. bucket: of each row (n,), where ids do not decide it. DataError for a bucket without a row in
    a split.
    """
    bucket = _buckets(known, counts, spec) if bucket is None else bucket
    if spec["exclude_first"] and known.positions_known:
        bucket = np.where(known.position == 0, NONE, bucket)
    split = _dealt(known, spec) if known.split is None else known.split.astype(np.int8)
    order = np.lexsort((known.position, known.sequence))
    kept = []
    for b, name in enumerate(spec["names"]):
        for part, value in _SPLITS:
            members = order[(bucket[order] == b) & (split[order] == value)]
            if not members.size:
                raise DataError(f"bucket {name} has no row in {part}; add sequences, or use fewer buckets")
            drawn = generator(spec["seed"], "rows", part, b).permutation(members.size)
            kept.append(members[np.sort(drawn[: spec["rows_per_bucket"][part]])])
    rows = np.concatenate(kept)
    rows = rows[np.lexsort((known.position[rows], known.sequence[rows], bucket[rows]))]
    return Chosen(rows, bucket[rows].astype(np.int16), split[rows])


def _dealt(known: Coordinates, spec: Mapping[str, Any]) -> NDArray[np.int8]:
    """FIT or EVAL of each row (n,), by its sequence."""
    sequences, at = np.unique(known.sequence, return_inverse=True)
    return split_of(sequences.tolist(), spec["seed"], spec["eval_fraction"])[at]


def _buckets(known: Coordinates, counts: Counts, spec: Mapping[str, Any]) -> NDArray[np.int16]:
    """The bucket of each row (n,), NONE for ids of no bucket."""
    of = spec["buckets"]
    if not of:
        return np.zeros(len(known.sequence), np.int16)
    number = None if of["edges"] is not None else of["number"]
    of_ids = bucket_of_ids(counts.counts, counts.special_ids, of["kind"], n=number, edges=of["edges"])
    by_target = of["by"] == "target" and spec["objective"] != "mlm"
    counted = known.target_id if by_target else known.token_id
    usable = (counted >= 0) & (counted < of_ids.size)
    usable &= ~np.isin(known.token_id, counts.special_ids)
    return np.where(usable, of_ids[np.where(usable, counted, 0)], NONE)
