"""Writing one sharded Zarr v3 array piece by piece, in the memory of one chunk a site whatever its length.

Zarr's own writer needs a whole shard at once. The format is Zarr's: chunks compressed by zstd, one after the other,
then an index of their offsets and sizes with its CRC-32C; plain zarr and xarray read the result.

    writer = RunWriter(group, "activations", (sites, tokens, d), encoding=Encoding("float16"))
    for rows in batches:          # (site, m, d) float32: the next m tokens of every site
        writer.append(rows)
    writer.close()                # `DataError` when fewer tokens came than were promised

The group must be one that `store.create` yielded, or a group inside it.
"""

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Any

import google_crc32c
import numpy as np
import zarr
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from zarr.codecs import ZstdCodec

from isotrace.encoding import Encoding, Float32, relative_error
from isotrace.errors import DataError
from isotrace.grids import Grid, run_grid
from isotrace.recorded import Recorded

LEVEL = 1
COMPRESSOR = ZstdCodec(level=LEVEL)
_ABSENT = np.uint64(2**64 - 1)


class RunWriter:
    """Rows of all sites, appended run by run; memory: one chunk (at most 2 MB) a site, twice for float16's scale.

    group: inside a store being created; shape: (site, token, feature), all known beforehand;
    encoding: how rows are stored; attributes: of the array, beside ``stored_dtype`` and ``max_relative_error``.
    """

    def __init__(
        self,
        group: zarr.Group,
        name: str,
        shape: tuple[int, int, int],
        *,
        encoding: Encoding,
        dims: tuple[str, str, str] = ("site", "token", "feature"),
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        self._encoding, self._error = encoding, 0.0
        known = {**(attributes or {}), "stored_dtype": encoding.dtype, "max_relative_error": 0.0}
        self._rows = ShardWriter(group, name, shape, encoding.stored, dims, axis=1, attributes=known)
        self._scale = None
        if encoding.scaled:
            self._scale = ShardWriter(group, f"{name}_scale", shape[:2], np.dtype("<f4"), dims[:2], axis=1)

    def append(self, rows: Float32) -> None:
        """Add the next m tokens, (site, m, feature) float32; `DataError` where an entry is not finite."""
        stored, scale = self._encoding.encode(rows)
        _refuse_nonfinite(stored, self._rows.name)
        self._rows.append(stored)
        if self._scale is not None and scale is not None:
            self._scale.append(scale)
        if self._encoding.dtype != "float32":
            self._error = max(self._error, relative_error(rows, stored, scale))

    def close(self) -> None:
        """Write indices and the measured error; `DataError` when tokens are missing."""
        self._rows.close()
        if self._scale is not None:
            self._scale.close()
        if self._error > 0:
            self._rows.array.attrs["max_relative_error"] = self._error


class ShardWriter:
    """Any numeric array that grows along one axis; all other axes come whole with each piece."""

    def __init__(
        self,
        group: zarr.Group,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        dims: tuple[str, ...],
        *,
        axis: int,
        grid: Grid | None = None,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        store = group.store
        assert isinstance(store, Recorded), "the group is not inside a store being created"
        self._store, self._axis = store, axis
        self.grid = grid or run_grid(shape, dtype.itemsize)
        self.array = group.create_array(
            name,
            shape=shape,
            dtype=dtype,
            chunks=self.grid.chunk,
            shards=self.grid.shard,
            compressors=COMPRESSOR,
            dimension_names=dims,
            attributes=dict(attributes or {}),
        )
        self.name = self.array.path
        self._shape, self._dtype = shape, dtype.newbyteorder("<")
        self._seen = self._filled = 0
        self._buffer: NDArray[Any] | None = None
        self._open: dict[tuple[int, ...], _Shard] = {}

    def append(self, values: NDArray[Any]) -> None:
        """Add the next m entries along the axis; `DataError` beyond the promised shape."""
        axis, m = self._axis, values.shape[self._axis]
        rest = [shape[:axis] + shape[axis + 1 :] for shape in (values.shape, self._shape)]
        if rest[0] != rest[1] or self._seen + m > self._shape[axis]:
            raise DataError(
                f"{self.name}: {values.shape} came after {self._seen} of {self._shape[axis]} along axis {axis} "
                f"of {self._shape}"
            )
        taken = 0
        while taken < m:
            part = min(self.grid.chunk[axis] - self._filled, m - taken)
            self._take(values[(slice(None),) * axis + (slice(taken, taken + part),)])
            taken += part

    def close(self) -> None:
        """Write what is left and the last indices; `DataError` when fewer entries came than were promised."""
        if self._filled and self._buffer is not None:
            self._write(self._buffer[(slice(None),) * self._axis + (slice(0, self._filled),)])
        promised = self._shape[self._axis]
        if self._seen != promised:
            raise DataError(f"{self.name}: {self._seen} of {promised} entries came along axis {self._axis}; rerun")
        self._finish()

    def _take(self, piece: NDArray[Any]) -> None:
        """Write a piece that is a whole run; gather a shorter one."""
        axis, run, m = self._axis, self.grid.chunk[self._axis], piece.shape[self._axis]
        self._seen += m
        if m == run:
            self._write(piece)
            return
        if self._buffer is None:
            self._buffer = np.empty((*self._shape[:axis], run, *self._shape[axis + 1 :]), self._dtype)
        self._buffer[(slice(None),) * axis + (slice(self._filled, self._filled + m),)] = piece
        self._filled += m
        if self._filled == run:
            self._write(self._buffer)
            self._filled = 0

    def _write(self, block: NDArray[Any]) -> None:
        """Compress the chunks of one run and append them to their shards."""
        axis = self._axis
        at = (self._seen - 1) // self.grid.chunk[axis]
        packed: dict[tuple[int, ...], list[tuple[tuple[int, ...], bytes]]] = {}
        for place, content in self._chunks(block):
            chunk = (*place[:axis], at, *place[axis + 1 :])
            pairs = [divmod(c, n) for c, n in zip(chunk, self.grid.chunks_a_shard, strict=True)]
            packed.setdefault(tuple(p[0] for p in pairs), []).append((tuple(p[1] for p in pairs), content))
        for key, chunks in packed.items():
            if key not in self._open:
                self._open[key] = _Shard(self._store, self._key(key), self.grid.chunks_a_shard)
            self._open[key].add(chunks)
        if (at + 1) % self.grid.chunks_a_shard[axis] == 0:
            self._finish()

    def _chunks(self, block: NDArray[Any]) -> Iterator[tuple[tuple[int, ...], bytes]]:
        """Every chunk of a run: its place in the run's grid of chunks, and its bytes."""
        zstd, size = Zstd(level=LEVEL), self.grid.chunk
        for place in np.ndindex(tuple(math.ceil(n / c) for n, c in zip(block.shape, size, strict=True))):
            piece = block[tuple(slice(i * c, (i + 1) * c) for i, c in zip(place, size, strict=True))]
            if piece.shape != size:  # at the array's edge a chunk is stored whole
                piece = np.pad(piece, [(0, c - n) for n, c in zip(piece.shape, size, strict=True)])
            yield place, zstd.encode(np.ascontiguousarray(piece, self._dtype))

    def _key(self, shard: tuple[int, ...]) -> str:
        return f"{self.array.path}/{self.array.metadata.encode_chunk_key(shard)}"

    def _finish(self) -> None:
        for shard in self._open.values():
            shard.close()
        self._open.clear()


class _Shard:
    """One file: chunks in the order they came, then the index. Opened for each addition, so none is left open."""

    def __init__(self, store: Recorded, key: str, chunks: tuple[int, ...]) -> None:
        self._store, self._key, self._bytes = store, key, 0
        self._index = np.full((*chunks, 2), _ABSENT, "<u8")
        self._sha256 = hashlib.sha256()
        (store.root / key).parent.mkdir(parents=True, exist_ok=True)

    def add(self, chunks: list[tuple[tuple[int, ...], bytes]]) -> None:
        for place, content in chunks:
            self._index[place] = self._bytes, len(content)
            self._bytes += len(content)
        self._append(*(content for _, content in chunks))

    def close(self) -> None:
        index = self._index.tobytes()
        checksum = google_crc32c.value(index).to_bytes(4, "little")
        self._append(index, checksum)
        total = self._bytes + len(index) + len(checksum)
        self._store.digests[self._key] = {"bytes": total, "sha256": self._sha256.hexdigest()}

    def _append(self, *contents: bytes) -> None:
        with (self._store.root / self._key).open("ab") as stream:
            for content in contents:
                stream.write(content)
                self._sha256.update(content)


def _refuse_nonfinite(stored: NDArray[np.floating], name: str) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        suspect = not math.isfinite(float(stored.sum(dtype=np.float32)))  # one pass; the exact test only if need be
    if suspect and not np.isfinite(stored).all():
        raise DataError(f"{name}: not finite; look at the checkpoint's weights, or use execution.dtype: float32")
