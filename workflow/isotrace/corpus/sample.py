"""The positions that are read at every checkpoint, and the masks of a masked language model.

Uniform within a frequency bucket and split, fixed by the seed; masking is Devlin et al. 2019, its rate a key.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.buckets import NONE
from isotrace.corpus.tokens import EVAL, FIT, Tokens
from isotrace.errors import ConfigError, DataError
from isotrace.seeding import generator

IGNORED = -100
NO_TARGET = -1
_SPLITS = (("fit", FIT), ("eval", EVAL))


@dataclass(frozen=True)
class Sample:
    """n positions sorted by (sequence, draw, position), each array (n,).

    draw numbers the masks of one sequence (0 for clm); token_id is the original id, never the mask's; target_id
    is the predicted id or -1 (an unmasked position of mlm); split is 0 fit, 1 eval.
    """

    sequence: NDArray[np.int32]
    draw: NDArray[np.int16]
    position: NDArray[np.int32]
    token_id: NDArray[np.int32]
    target_id: NDArray[np.int32]
    bucket: NDArray[np.int16]
    split: NDArray[np.int8]
    masked: NDArray[np.bool_]

    @property
    def n(self) -> int:
        return int(self.sequence.size)

    def select(self, keep: NDArray[np.bool_]) -> "Sample":
        """The positions where ``keep`` (n,) is true."""
        return Sample(**{name: array[keep] for name, array in vars(self).items()})


def sample(tokens: Tokens, bucket_of: NDArray[np.int16], spec: dict[str, Any]) -> Sample:
    """Draw positions of every bucket from seeded sequences of each split.

    spec: ``seed``, ``objective`` (clm | mlm), ``sequences`` and ``rows_per_bucket`` ({fit, eval}; fewer rows where
    a bucket has fewer), ``exclude_first``, ``bucket_by`` (input | target), and for mlm what ``masks`` reads and
    ``mask_draws``. Special ids and, for clm, the last position are left out.
    DataError if a split has too few sequences, a bucket gets no position, or (mlm) no masked one.
    """
    if spec["objective"] not in ("clm", "mlm") or spec["bucket_by"] not in ("input", "target"):
        raise ConfigError(f"objective {spec['objective']!r} by {spec['bucket_by']!r}: clm | mlm by input | target")
    kept = []
    for name, split in _SPLITS:
        pool = _pool(tokens, bucket_of, spec, name, split)
        n_buckets = int(bucket_of.max()) + 1
        for bucket in range(n_buckets):
            kept.append(_draw(pool, bucket, spec, name))
    chosen = _concatenate(kept)
    order = np.lexsort((chosen.position, chosen.draw, chosen.sequence))
    return Sample(**{field: array[order] for field, array in vars(chosen).items()})


def _pool(tokens: Tokens, bucket_of: NDArray[np.int16], spec: dict[str, Any], name: str, split: int) -> Sample:
    """Every position of the split's chosen sequences that has a bucket."""
    available, wanted = tokens.sequences(split), spec["sequences"][name]
    if wanted > available.size:
        said = f"sample.sequences.{name}: {wanted} are asked for, the text has {available.size}"
        raise DataError(f"{said}; lower it, or add text")
    chosen = np.sort(generator(spec["seed"], "sequences", name).choice(available, wanted, replace=False))
    draws = spec["mask_draws"] if spec["objective"] == "mlm" else 1
    sequence, draw = np.repeat(chosen, draws), np.tile(np.arange(draws), wanted)
    ids = tokens.ids[sequence]
    if spec["objective"] == "mlm":
        labels = masks(ids, sequence, draw, spec, tokens.special_ids)[1]
        target = np.where(labels == IGNORED, NO_TARGET, labels)
    else:
        target = np.concatenate([ids[:, 1:], np.full((len(ids), 1), NO_TARGET, ids.dtype)], axis=1)
    bucket = position_buckets(ids, target, bucket_of, spec, tokens.special_ids)
    pool = _flat(sequence, draw, ids, target, split)
    masked = pool.target_id != NO_TARGET if spec["objective"] == "mlm" else pool.masked
    whole = Sample(**{**vars(pool), "bucket": bucket.ravel(), "masked": masked})  # (n, T) -> (n*T,)
    return whole.select(whole.bucket != NONE)


def position_buckets(
    ids: NDArray[np.int32],
    target: NDArray[np.integer],
    bucket_of: NDArray[np.int16],
    spec: dict[str, Any],
    special_ids: tuple[int, ...],
) -> NDArray[np.int16]:
    """Bucket of every position that may be read, NONE elsewhere, (n, T); ids the original ones, target -1 for none.

    spec: ``objective``, ``bucket_by``, ``exclude_first``, as in ``sample``.
    """
    by_input = spec["bucket_by"] == "input" or spec["objective"] == "mlm"
    counted = ids if by_input else target
    excluded = (counted == NO_TARGET) | np.isin(ids, special_ids)
    if spec["objective"] == "clm":
        excluded |= target == NO_TARGET  # the last position predicts nothing: its gradient is exactly zero
    if spec["exclude_first"]:
        excluded[:, 0] = True
    return np.where(excluded, NONE, bucket_of[counted]).astype(np.int16)


def _flat(
    sequence: NDArray[np.int64],
    draw: NDArray[np.int64],
    ids: NDArray[np.int32],
    target: NDArray[np.int32],
    split: int,
) -> Sample:
    n, length = ids.shape
    return Sample(
        sequence=np.repeat(sequence, length).astype(np.int32),
        draw=np.repeat(draw, length).astype(np.int16),
        position=np.tile(np.arange(length), n).astype(np.int32),
        token_id=ids.ravel().astype(np.int32),
        target_id=target.ravel().astype(np.int32),
        bucket=np.full(n * length, NONE, np.int16),
        split=np.full(n * length, split, np.int8),
        masked=np.zeros(n * length, np.bool_),
    )


def _draw(pool: Sample, bucket: int, spec: dict[str, Any], name: str) -> Sample:
    members = np.flatnonzero(pool.bucket == bucket)
    if members.size == 0:
        raise DataError(f"bucket b{bucket} has no token in the {name} sequences; raise sequences.{name}")
    rng = generator(spec["seed"], "rows", name, bucket)
    chosen = rng.permutation(members)[: spec["rows_per_bucket"][name]]
    keep = np.zeros(pool.n, np.bool_)
    keep[chosen] = True
    if spec["objective"] == "mlm" and not np.any(pool.masked & keep):
        raise DataError(f"bucket b{bucket} has no masked token in the {name} sequences; raise mask_draws or mask_rate")
    return pool.select(keep)


def _concatenate(parts: list[Sample]) -> Sample:
    return Sample(**{name: np.concatenate([vars(part)[name] for part in parts]) for name in vars(parts[0])})


def masks(
    ids: NDArray[np.int32],
    sequence: NDArray[np.integer],
    draw: NDArray[np.integer],
    spec: dict[str, Any],
    special_ids: tuple[int, ...],
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Masked inputs and labels of rows of ids, both (n, T); labels are -100 where nothing is predicted.

    Row i depends on (seed, sequence[i], draw[i]) and on nothing else, so every checkpoint and batch sees the same.
    spec: ``seed``, ``mask_rate``, ``mask_token_id``, ``random_ids`` (ids below it may replace), ``replace`` (shares
    of mask, random, unchanged). The rate's share of the ordinary positions is masked, at least one, never a special.
    """
    inputs, labels = ids.copy(), np.full_like(ids, IGNORED)
    ordinary = ~np.isin(ids, special_ids)
    substitutes = np.setdiff1d(np.arange(spec["random_ids"]), special_ids)
    by_mask, by_random, _ = spec["replace"]
    for i in range(len(ids)):
        rng = generator(spec["seed"], "mask", int(sequence[i]), int(draw[i]))
        candidates = np.flatnonzero(ordinary[i])
        n_masked = min(candidates.size, max(1, round(spec["mask_rate"] * candidates.size)))
        chosen = rng.permutation(candidates)[:n_masked]
        fate, random_ids = rng.random(n_masked), rng.choice(substitutes, n_masked)
        labels[i, chosen] = ids[i, chosen]
        inputs[i, chosen[fate < by_mask]] = spec["mask_token_id"]
        swapped = (fate >= by_mask) & (fate < by_mask + by_random)
        inputs[i, chosen[swapped]] = random_ids[swapped]
    return inputs, labels
