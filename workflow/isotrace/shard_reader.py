"""Reading arrays that `shards` wrote, chunk by chunk into place, without zarr's copies of whole shards.

The format is Zarr's (sharding codec, index at the end); what is not cut that way is read by zarr itself. Files are
compared with the manifest's digests on opening, so the index's own checksum is not looked at again.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import zarr
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from zarr.storage import LocalStore

from isotrace.storage.away import Fetched

Shape = tuple[int, ...]
ABSENT = 2**64 - 1


def read_array(array: zarr.Array[Any], sites: int | slice = slice(None)) -> NDArray[Any]:
    """All of an array, or of some entries of its first axis, whose chunks hold one entry each."""
    store = array.store
    if isinstance(store, Fetched):
        for name in store.files_below(f"{array.path}/"):
            store.require(name)
    if array.shards is None or array.chunks[0] != 1 or not isinstance(store, LocalStore):
        return np.asarray(array[sites])
    wanted = range(array.shape[0])[sites]
    chosen = [wanted] if isinstance(wanted, int) else list(wanted)
    found = np.empty((len(chosen), *array.shape[1:]), array.dtype)
    for key in np.ndindex(*(math.ceil(n / s) for n, s in zip(array.shape, array.shards, strict=True))):
        shard = _Shard(array, store.root / array.path / array.metadata.encode_chunk_key(key), key)
        inside = [(i - key[0] * shard.chunks[0], to) for to, i in enumerate(chosen) if i // shard.chunks[0] == key[0]]
        if inside:
            shard.read(inside, found)
    return found[0] if isinstance(wanted, int) else found


@dataclass(frozen=True)
class _Shard:
    """One file of an array, its path and its place in the grid of shards."""

    array: Any
    path: Path
    key: Shape

    @property
    def chunks(self) -> Shape:
        """Chunks along each axis."""
        return tuple(s // c for s, c in zip(self.array.shards, self.array.chunks, strict=True))

    def read(self, inside: list[tuple[int, int]], found: NDArray[Any]) -> None:
        """Fill found[to] with entry ``at`` of the shard's first axis, for each (at, to)."""
        size = 16 * math.prod(self.chunks)
        with self.path.open("rb") as stream:
            stream.seek(-(size + 4), 2)  # (offset, length) of every chunk, then a checksum
            index = np.frombuffer(stream.read(size), "<u8").reshape(*self.chunks, 2)
            for at, to in inside:
                for place in np.ndindex(*self.chunks[1:]):
                    offset, length = (int(x) for x in index[(at, *place)])
                    self._chunk(stream, offset, length, found[to][self._within(place)])

    def _within(self, place: Shape) -> tuple[slice, ...]:
        """Where in an entry of the array a chunk lies."""
        grid = zip(self.key[1:], self.chunks[1:], place, self.array.chunks[1:], strict=True)
        return tuple(slice((k * n + i) * c, (k * n + i + 1) * c) for k, n, i, c in grid)

    def _chunk(self, stream: BinaryIO, offset: int, length: int, target: NDArray[Any]) -> None:
        if not target.size:
            return
        if offset == ABSENT:
            target[...] = self.array.fill_value
            return
        stream.seek(offset)
        content, shape = stream.read(length), self.array.chunks[1:]
        if target.shape == shape and target.flags.c_contiguous:
            Zstd().decode(content, out=target)
        else:  # at the array's edge a chunk is stored whole
            whole = np.frombuffer(Zstd().decode(content), self.array.dtype).reshape(shape)
            target[...] = whole[tuple(slice(n) for n in target.shape)]
