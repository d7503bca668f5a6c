"""The rows of a dump that are kept, and their moments, in the layout of a capture."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from isotrace.capture.moments_store import QUANTITIES, moments_of_rows, write_moments
from isotrace.capture.rows import ARRAYS, COORDINATES
from isotrace.corpus.tokens import EVAL, FIT
from isotrace.encoding import Encoding
from isotrace.limits import Plan, check_limits
from isotrace.shards import RunWriter
from isotrace.store import put
from isotrace.vectors.choose import Chosen, Counts
from isotrace.vectors.contents import Coordinates, Layout, site_rows
from isotrace.vectors.readers import Dump

Rows = NDArray[np.float32]


def check_size(of: Layout, chosen: Chosen, spec: Mapping[str, Any]) -> None:
    """`DataError` where the stores would take more files than a checkpoint may."""
    rows = tuple(int(np.sum(chosen.bucket == b)) for b in range(len(spec["names"])))
    plan = Plan(sites=len(of.sites), width=of.d, rows=rows, dtype=spec["store"]["dtype"])
    check_limits(plan, f"{spec['model']} {spec['checkpoint']}")


def sample_digest(known: Coordinates, chosen: Chosen) -> str:
    """Sixteen hex digits of what was kept: two checkpoints that agree hold the same tokens in the same places."""
    digest = hashlib.sha256()
    for values in (known.token_id, known.target_id, known.sequence, known.position):
        digest.update(np.ascontiguousarray(values[chosen.rows]).data)
    digest.update(chosen.bucket.tobytes() + chosen.split.tobytes())
    return digest.hexdigest()[:16]


def write_stores(
    dump: Dump,
    of: Layout,
    known: Coordinates,
    chosen: Chosen,
    counts: Counts,
    *,
    cache: zarr.Group,
    moments: zarr.Group,
    spec: Mapping[str, Any],
) -> None:
    """Fill the cache and the moments, two stores being created; ``counts`` (id,) stand at the root of the cache.

    spec: ``names`` (of the buckets), ``arrays``, ``store`` ({dtype}), ``threads``. A gradient that the dump lacks is
    stored as zero, which has no direction and enters nothing.
    """
    for b, bucket in enumerate(spec["names"]):
        group, kept = cache.create_group(bucket), np.flatnonzero(chosen.bucket == b)
        put(group, "site", np.array(of.sites), ("site",))
        for name, values in _coordinates(known, chosen, kept).items():
            put(group, name, values, ("token",), **({"units": "nats"} if name == "loss" else {}))
    for name in ARRAYS:
        _write_rows(cache, name, _rows(dump, spec["arrays"][name], of, chosen), chosen, spec)
    put(cache, "counts", counts.counts, ("id",), units="tokens")
    for bucket in spec["names"]:
        stored: Any = cache[bucket]
        found = moments_of_rows(stored, (FIT, EVAL), spec["threads"])
        write_moments(moments.create_group(bucket), of.sites, QUANTITIES, of.d, found)


def _coordinates(known: Coordinates, chosen: Chosen, kept: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    at = chosen.rows[kept]
    found: dict[str, NDArray[Any]] = {
        "token_id": known.token_id[at].astype(np.int32),
        "sequence": known.sequence[at],
        "draw": np.zeros(len(at), np.int16),
        "position": known.position[at],
        "target_id": known.target_id[at].astype(np.int32),
        "masked": known.masked[at],
        "split": chosen.split[kept],
    }
    return {name: found[name] for name in COORDINATES} | {"loss": known.loss[at]}


def _rows(dump: Dump, name: str | None, of: Layout, chosen: Chosen) -> Rows:
    """Kept vectors (site, m, d); one site is read at a time."""
    rows = np.zeros((len(of.sites), len(chosen.rows), of.d), np.float32)
    for i in range(len(of.sites) if name else 0):
        assert name is not None
        with np.errstate(over="ignore"):  # the writer refuses what float32 cannot hold
            rows[i] = site_rows(dump, name, of, i)[chosen.rows]
    return rows


def _write_rows(cache: zarr.Group, name: str, rows: Rows, chosen: Chosen, spec: Mapping[str, Any]) -> None:
    encoding = Encoding(spec["store"]["dtype"])
    coordinates = {"coordinates": " ".join((*COORDINATES, "loss"))}
    for b, bucket in enumerate(spec["names"]):
        group, kept = cache[bucket], rows[:, chosen.bucket == b]
        assert isinstance(group, zarr.Group)
        writer = RunWriter(group, name, kept.shape, encoding=encoding, attributes=coordinates)
        writer.append(np.ascontiguousarray(kept))
        writer.close()
