"""The moments of a checkpoint: of exactly the rows in its cache, or streamed over every evaluation token.

Arrays over (split, quantity, site) a bucket, float32 from float64 sums; streamed ones by group of sequences too.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from isotrace.capture.accumulate import Key
from isotrace.capture.rows import ARRAYS
from isotrace.geometry.moments import Moments, empty, merge, moments
from isotrace.geometry.rows import nonzero
from isotrace.grids import block_grid
from isotrace.shards import ShardWriter
from isotrace.store import put
from isotrace.stored_rows import SPLITS, read_rows

QUANTITIES = ("activation", "gradient")
DIMS = ("split", "quantity", "site")
_RUN = 2**15
"""Rows whose moments are taken at once, in float64."""

Place = tuple[int, str, str]
"""Split, quantity, site."""


def moments_of_rows(bucket: Any, splits: Sequence[int], threads: int) -> Iterator[tuple[Place, Moments]]:
    """Moments of the cached rows of a bucket (an open group of the cache), as many sites at a time as threads.

    Each on one thread of BLAS: sites in parallel are faster than one product in parallel, and the same to the bit
    for any number of threads.
    """
    sites, split = [str(s) for s in bucket["site"][...]], bucket["split"][...]
    places = [(q, i) for q in range(len(QUANTITIES)) for i in range(len(sites))]

    def of_site(place: tuple[int, int]) -> list[tuple[Place, Moments]]:
        q, i = place
        rows = read_rows(bucket, ARRAYS[q], i)  # (n, d)
        only = QUANTITIES[q] == "gradient"
        return [((s, QUANTITIES[q], sites[i]), _moments(rows[split == s], nonzero_only=only)) for s in splits]

    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads) as pool:
        for start in range(0, len(places), threads):  # no more at once: in float64 they are large
            for found in pool.map(of_site, places[start : start + threads]):
                yield from found


def _moments(rows: NDArray[np.float32], *, nonzero_only: bool) -> Moments:
    """Moments of rows (n, d), a run at a time so that their float64 copy stays small."""
    found = empty(rows.shape[1])
    for start in range(0, len(rows), _RUN):
        run = rows[start : start + _RUN]
        found = merge(found, moments(run[nonzero(run)] if nonzero_only else run))
    return found


def write_moments(
    group: zarr.Group, sites: Sequence[str], quantities: Sequence[str], d: int, found: Iterable[tuple[Place, Moments]]
) -> None:
    """Write one bucket's moments; what ``found`` does not name has n = 0."""
    shape = (len(SPLITS), len(quantities), len(sites))
    n, q4 = np.zeros(shape, np.int64), np.zeros(shape)
    mean, q3 = np.zeros((*shape, d), np.float32), np.zeros((*shape, d), np.float32)
    scatter = np.zeros((*shape, d, d), np.float32)
    for (s, quantity, site), m in found:
        at = (s, quantities.index(quantity), sites.index(site))
        n[at], mean[at], scatter[at], q3[at], q4[at] = m.n, m.mean, m.scatter, m.q3, m.q4
    put(group, "split", np.array(list(SPLITS)), ("split",))
    put(group, "quantity", np.array(quantities), ("quantity",))
    put(group, "site", np.array(sites), ("site",))
    put(group, "n", n, DIMS)
    put(group, "mean", mean, (*DIMS, "feature"))
    put(group, "scatter", scatter, (*DIMS, "feature", "feature_other"))
    put(group, "q3", q3, (*DIMS, "feature"))
    put(group, "q4", q4, DIMS)


class GroupWriter:
    """Moments of evaluation rows by group of sequences, appended a group at a time.

    ``group_scatter`` (group, quantity, site, feature, feature_other) float32, and ``group_sums`` (group, quantity,
    site, sum) float64 that holds n, q4, mean (d) and q3 (d) one after the other: few files, whatever the groups.
    """

    def __init__(
        self, buckets: Sequence[zarr.Group], sites: Sequence[str], quantities: Sequence[str], d: int, groups: int
    ) -> None:
        self._sites, self._quantities, self._d = list(sites), list(quantities), d
        place = (groups, len(quantities), len(sites))
        self._scatter = [_by_group(b, "group_scatter", (*place, d, d), "<f4") for b in buckets]
        self._sums = [_by_group(b, "group_sums", (*place, 2 + 2 * d), "<f8") for b in buckets]
        self._next, self._groups = 0, groups

    def end_group(self, group: int, done: Mapping[Key, Moments]) -> None:
        """Write the moments of one group, and nothing for groups that were passed over."""
        while self._next < group:
            self._append({})
        self._append(done)

    def close(self) -> None:
        """Write groups that never came as empty, and end the files."""
        while self._next < self._groups:
            self._append({})
        for writer in (*self._scatter, *self._sums):
            writer.close()

    def _append(self, done: Mapping[Key, Moments]) -> None:
        place = (1, len(self._quantities), len(self._sites))
        for b, (by_scatter, by_sums) in enumerate(zip(self._scatter, self._sums, strict=True)):
            scatter = np.zeros((*place, self._d, self._d), np.float32)
            sums = np.zeros((*place, 2 + 2 * self._d))
            for (bucket, _, quantity, site), m in done.items():
                if bucket == b:
                    at = (0, self._quantities.index(quantity), self._sites.index(site))
                    scatter[at], sums[at] = m.scatter, np.concatenate([[m.n, m.q4], m.mean, m.q3])
            by_scatter.append(scatter)
            by_sums.append(sums)
        self._next += 1


def _by_group(bucket: zarr.Group, name: str, shape: tuple[int, ...], dtype: str) -> ShardWriter:
    last = ("feature", "feature_other") if name == "group_scatter" else ("sum",)
    dims = ("group", "quantity", "site", *last)
    kind = np.dtype(dtype)
    return ShardWriter(bucket, name, shape, kind, dims, axis=0, grid=block_grid(shape, kind.itemsize))
