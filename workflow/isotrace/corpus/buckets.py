"""Which frequency bucket each token id belongs to: by rank, by equal token mass, or by count.

The three rules are our choice; Bernas et al. 2026 compare frequent with rare tokens.
"""

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import ConfigError, DataError

KINDS = ("rank", "mass", "count")
NONE = -1


def bucket_of_ids(
    counts: NDArray[np.int64],
    special_ids: Collection[int],
    kind: str,
    *,
    n: int | None = None,
    edges: Sequence[float] | None = None,
) -> NDArray[np.int16]:
    """The bucket of each id, (V,) int16: 0 is the most frequent, -1 belongs to none (special, or never seen).

    kind ``rank``: ``edges`` are ascending ranks (0 the most frequent) at which the next bucket begins, or ``n``
    buckets of equally many types; ``mass``: ``n`` buckets of about equal token mass, or ascending ``edges`` as
    fractions of the mass; ``count``: descending ``edges``, a bucket holding the counts at or above its edge.
    ConfigError for another kind; DataError naming a bucket that gets no id.
    """
    seen = np.asarray(counts) > 0
    seen[[i for i in special_ids if i < seen.size]] = False
    ids = np.flatnonzero(seen)
    ids = ids[np.lexsort((ids, -counts[ids]))]  # by falling count; equal counts by id, so that bytes are stable
    if kind == "rank":
        cuts = _ascending(kind, edges, n, len(ids))
        bucket = np.searchsorted(cuts, np.arange(len(ids)), side="right")
    elif kind == "mass":
        cuts = _ascending(kind, edges, n, 1.0)
        before = np.cumsum(counts[ids]) - counts[ids]
        bucket = np.searchsorted(cuts, before / max(1, int(counts[ids].sum())), side="right")
    elif kind == "count":
        cuts = _descending(edges, n)
        bucket = np.searchsorted(-cuts, -counts[ids], side="left")
    else:
        raise ConfigError(f"bucket kind {kind!r}: allowed are {', '.join(KINDS)}")
    _none_empty(bucket, len(cuts) + 1, kind)
    of_ids = np.full(len(counts), NONE, np.int16)
    of_ids[ids] = bucket
    return of_ids


def _ascending(kind: str, edges: Sequence[float] | None, n: int | None, end: float) -> NDArray[np.float64]:
    if (edges is None) == (n is None):
        raise ConfigError(f"bucket kind {kind!r}: give n or edges, one of them")
    if n is not None:
        return np.arange(1, n, dtype=np.float64) * end / n
    cuts = np.asarray(edges, np.float64)
    if np.any(np.diff(cuts) <= 0) or np.any(cuts <= 0):
        raise ConfigError(f"bucket edges {list(cuts)}: {kind} edges ascend from above 0")
    return cuts


def _descending(edges: Sequence[float] | None, n: int | None) -> NDArray[np.float64]:
    if edges is None or n is not None:
        raise ConfigError("bucket kind 'count': give edges, descending counts, and no n")
    cuts = np.asarray(edges, np.float64)
    if np.any(np.diff(cuts) >= 0):
        raise ConfigError(f"bucket edges {list(cuts)}: count edges descend, as [1000, 100, 10]")
    return cuts


def _none_empty(bucket: NDArray[np.integer], n: int, kind: str) -> None:
    empty = [f"b{i}" for i in range(n) if not np.any(bucket == i)]
    if empty:
        raise DataError(
            f"no token id falls into bucket {', '.join(empty)} of {n} by {kind}; use fewer or other buckets"
        )
