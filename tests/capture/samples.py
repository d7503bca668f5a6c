"""A sample over the three sequences of a case, as a sealed one would give it, and stores to capture into."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import zarr
from families import Case

from isotrace.capture.maps import find_maps
from isotrace.capture.sites import find_sites, width
from isotrace.capture.stores import capture_stores
from isotrace.corpus.stores import Passes
from isotrace.store import create

MAKING = {"params_digest": "", "code_digest": "", "versions": {}}
BUCKETS = ["b0", "b1"]
SPEC = {
    "threads": 1,
    "buckets": BUCKETS,
    "batch_size": 2,
    "store": {"dtype": "float32"},
    "moments_tokens": "sample",
    "weight_gradients": "none",
}


def sample_of(case: Case, copies: int = 3) -> Passes:
    """Every third position of ``copies`` times the case's sequences; ids split in two buckets, sequences in turn."""
    inputs, targets = (np.tile(t.numpy().astype(np.int32), (copies, 1)) for t in (case.ids, case.targets))
    p, length = inputs.shape
    sequence = np.arange(p, dtype=np.int32)
    split = (sequence % 3 > 0).astype(np.int8)  # a third of the sequences is for fitting
    bucket = (inputs % 2).astype(np.int16)
    bucket[:, 0] = -1
    at, position = np.nonzero((np.arange(length)[None] + sequence[:, None]) % 3 == 0)
    at, position = at[position > 0], position[position > 0]
    rows = {
        "sequence": sequence[at],
        "draw": np.zeros(at.size, np.int16),
        "position": position.astype(np.int32),
        "token_id": inputs[at, position],
        "target_id": targets[at, position],
        "bucket": bucket[at, position],
        "split": split[at],
        "masked": targets[at, position] != -100,
    }
    return Passes(
        inputs=inputs,
        targets=targets,
        originals=inputs,
        position_bucket=bucket,
        sequence=sequence,
        split=split,
        rows=rows,
        at=at,
        bucket_of=(np.arange(40) % 2).astype(np.int16),
        counts=np.ones(40, np.int64),
        special_ids=(),
        exclude_first=True,
        digest="",
    )


@contextmanager
def captured(case: Case, folder: Path, passes: Passes | None = None, **spec: object) -> Iterator[dict[str, zarr.Group]]:
    """The cache and the moments of a case, sealed, opened by plain zarr."""
    chosen = SPEC | spec
    sites = find_sites(case.model)
    blocks = [name for name in sites if name.startswith("block.")] if chosen["weight_gradients"] != "none" else []
    manifests = {name: folder / f"{name}.json" for name in ("cache", "moments")}
    with create(manifests["moments"], {}, MAKING) as moments, create(manifests["cache"], {}, MAKING) as cache:
        maps = find_maps(case.model, sites, blocks)
        d = width(case.model, sites)
        capture_stores(case.model, sites, maps, d, passes or sample_of(case), cache, moments, chosen)
    yield {name: zarr.open_group(folder / name / "store.zarr", mode="r") for name in manifests}
