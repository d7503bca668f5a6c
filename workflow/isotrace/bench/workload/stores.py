"""The side of ours: a random sample run through a model into sealed stores, as a capture job does it."""

from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from isotrace.bench.registry import Sizes
from isotrace.capture.maps import Maps
from isotrace.capture.sites import width
from isotrace.capture.stores import capture_stores
from isotrace.corpus.sample import IGNORED
from isotrace.corpus.stores import Passes
from isotrace.corpus.tokens import EVAL, FIT
from isotrace.errors import ConfigError
from isotrace.seeding import generator
from isotrace.store import create

FINGERPRINT = {"params_digest": "", "code_digest": "", "versions": {}}


def random_passes(sizes: Sizes, rows: int) -> Passes:
    """``tokens`` random ids in sequences of ``length``, every other one for fit; the bucket of an id is its remainder.

    ``rows`` positions of those with a target are kept, evenly spread, or all if there are no more.
    ConfigError where a sequence would have no target or a bucket no id.
    """
    length, vocabulary = sizes["length"], sizes["vocabulary"]
    if length < 2 or vocabulary < sizes["buckets"]:
        raise ConfigError("bench --size: a sequence needs length=2 or more, a bucket an id of the vocabulary")
    count = max(2, sizes["tokens"] // length)
    inputs = generator(0, "bench", "ids").integers(vocabulary, size=(count, length), dtype=np.int32)
    targets = np.full_like(inputs, IGNORED)
    targets[:, :-1] = inputs[:, 1:]
    sequence, split = np.arange(count, dtype=np.int32), np.where(np.arange(count) % 2 == 0, EVAL, FIT).astype(np.int8)
    bucket_of = (np.arange(vocabulary) % sizes["buckets"]).astype(np.int16)
    position_bucket = np.where(targets == IGNORED, np.int16(-1), bucket_of[inputs])
    there = np.flatnonzero(targets != IGNORED)
    rows = min(rows, there.size)
    at, position = np.divmod(there[np.arange(rows) * there.size // rows], length)
    sample: dict[str, Any] = {
        "sequence": sequence[at],
        "draw": np.zeros(rows, np.int16),
        "position": position.astype(np.int32),
        "token_id": inputs[at, position],
        "target_id": targets[at, position],
        "bucket": bucket_of[inputs[at, position]],
        "split": split[at],
        "masked": np.zeros(rows, np.bool_),
    }
    return Passes(
        inputs=inputs,
        targets=targets,
        originals=inputs,
        position_bucket=position_bucket,
        sequence=sequence,
        split=split,
        rows=sample,
        at=at,
        bucket_of=bucket_of,
        counts=np.bincount(inputs.ravel(), minlength=vocabulary),
        special_ids=(),
        exclude_first=False,
        digest="",
    )


def captured(
    folder: Path,
    model: nn.Module,
    sites: dict[str, nn.Module],
    maps: Maps,
    passes: Passes,
    *,
    batch_size: int,
    moments_tokens: str,
    threads: int,
) -> None:
    """Seal the cache and the moments of one checkpoint in ``folder``, in place of those that were there."""
    spec = {
        "threads": threads,
        "buckets": [f"b{i}" for i in range(int(passes.bucket_of.max()) + 1)],
        "batch_size": batch_size,
        "store": {"dtype": "float32"},
        "moments_tokens": moments_tokens,
        "weight_gradients": "moments" if maps.modules else "none",
    }
    with (
        create(folder / "moments.json", {}, FINGERPRINT) as moments,
        create(folder / "cache.json", {}, FINGERPRINT) as cache,
    ):
        capture_stores(model, sites, maps, width(model, sites), passes, cache, moments, spec)
