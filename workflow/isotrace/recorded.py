"""A folder that remembers the digest of every file written into it, so that sealing reads nothing back.

A digest of what was meant, not of what is on the disk: a disk that lost a write is found by verifying.
"""

import hashlib
from pathlib import Path
from typing import TypedDict

from zarr.core.buffer import Buffer
from zarr.storage import LocalStore


class Digest(TypedDict):
    """Size and SHA-256 of one file, as the manifest holds them."""

    bytes: int
    sha256: str


class Recorded(LocalStore):
    """Zarr's local store; ``digests`` names every file that Zarr or a `ShardWriter` wrote, by its key."""

    def __init__(self, root: Path | str, *, read_only: bool = False) -> None:
        super().__init__(root, read_only=read_only)
        self.digests: dict[str, Digest] = {}

    async def set(self, key: str, value: Buffer) -> None:
        """Write one file and remember its digest."""
        await super().set(key, value)
        self._record(key, value)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write one file unless it is there."""
        if not await self.exists(key):
            await self.set(key, value)

    def _record(self, key: str, value: Buffer) -> None:
        content = value.as_buffer_like()
        self.digests[key] = {"bytes": len(value), "sha256": hashlib.sha256(content).hexdigest()}
