"""How arrays are cut: chunks of at most 2 MB, which are read alone, in shards of at most 250 MB, which are files.

A cluster's file system counts files and dislikes large ones; the numbers are our choice.
"""

import math
from dataclasses import dataclass

CHUNK_BYTES = 2**21
SHARD_BYTES = 250_000_000


@dataclass(frozen=True)
class Grid:
    """Chunk and shard shapes of one array; a shard is whole chunks."""

    chunk: tuple[int, ...]
    shard: tuple[int, ...]

    @property
    def chunks_a_shard(self) -> tuple[int, ...]:
        """Chunks along each axis of a shard."""
        return tuple(s // c for s, c in zip(self.shard, self.chunk, strict=True))

    def files(self, shape: tuple[int, ...]) -> int:
        """How many shards an array of this shape takes."""
        return math.prod(_ceil(n, s) for n, s in zip(shape, self.shard, strict=True))


def run_grid(shape: tuple[int, ...], itemsize: int) -> Grid:
    """Grid of an array (site, token, ...) that grows along its tokens: chunk one site, shard all sites.

    A chunk of two axes alone is an eighth as long, so that scales add little to the memory of the rows they belong to.
    """
    sites, tokens, *rest = (max(n, 1) for n in shape)
    row = itemsize * math.prod(rest)
    most = CHUNK_BYTES if rest else CHUNK_BYTES // 8
    run = _even(tokens, min(most // row, SHARD_BYTES // (sites * row)))
    together = _even(sites, SHARD_BYTES // (run * row))
    runs = _even(_ceil(tokens, run), SHARD_BYTES // (together * run * row))
    return Grid((1, run, *rest), (together, run * runs, *rest))


def block_grid(shape: tuple[int, ...], itemsize: int) -> Grid:
    """Grid of any other array, filled from its last axis on; of three axes or more, each first index apart."""
    shape = tuple(max(n, 1) for n in shape)
    apart = len(shape) > 2
    chunk = _fill(((1, *shape[1:]) if apart else shape), (1,) * len(shape), itemsize, CHUNK_BYTES)
    return Grid(chunk, _fill(shape, chunk, itemsize, SHARD_BYTES))


def _fill(shape: tuple[int, ...], unit: tuple[int, ...], itemsize: int, limit: int) -> tuple[int, ...]:
    """The longest run of units, in the order of memory, that stays within a limit in bytes."""
    found = list(unit)
    for axis in reversed(range(len(shape))):
        room = limit // (itemsize * math.prod(found))
        units = _ceil(shape[axis], unit[axis])
        found[axis] *= _even(units, room)
        if room < units:
            break
    return tuple(found)


def _even(n: int, most: int) -> int:
    """The size of equal parts of n, each at most ``most`` (at least 1): no part is mostly padding."""
    return _ceil(n, _ceil(n, max(most, 1)))


def _ceil(n: int, part: int) -> int:
    return -(-n // part)
