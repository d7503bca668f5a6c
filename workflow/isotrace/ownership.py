"""Who may seal a store: the attempt that began last. A killed workflow can leave a job that writes on (our choice).

Each attempt writes into a folder of its own name. It is the owner while ``.owner`` beside the store holds its name;
to take over and to seal happen under one lock, so a store is replaced by its owner alone.
"""

import os
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from isotrace.errors import DataError
from isotrace.locks import alone
from isotrace.storage.away import STORE, Away

OWNER = ".owner"
PART = ".part"


def store_path(manifest: Path) -> Path:
    """``.../step8.json`` -> ``.../step8/store.zarr``."""
    return manifest.with_suffix("") / STORE


class Attempt:
    """One attempt at writing the store of a manifest; it owns the store from its making until another is made.

    What reads as a store is unsealed at once: from here on only a whole new one takes its place.
    away: ``s3://BUCKET/PREFIX`` where its files are to lie, None for beside the manifest.
    """

    def __init__(self, manifest: Path, away: str | None = None) -> None:
        self.manifest, self._sealed = manifest, False
        self._final = store_path(manifest)
        self._name = f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self.folder = self._final.with_name(f"{STORE}.{self._name}{PART}")
        self._owner = self._final.with_name(OWNER)
        self.away = Away(manifest, away, self._name.rpartition(".")[2]) if away else None
        with alone(manifest):
            self._final.parent.mkdir(parents=True, exist_ok=True)
            self._owner.write_text(self._name, encoding="utf-8")
            manifest.unlink(missing_ok=True)
            self._sweep()

    def require(self) -> None:
        """`DataError` when another attempt has taken over."""
        if not self._owns():
            raise DataError(f"{self.manifest}: another run of this job took over; what this one wrote is dropped")

    def replace(self, write_manifest: Callable[[], None]) -> None:
        """Put the attempt in the place of the store and have its manifest written; `DataError` for a loser.

        An attempt that made no folder leaves no store there, as a tombstone does.
        """
        with alone(self.manifest):
            self.require()
            # Gone since the taking over; a manifest must never stand beside other contents, whoever wrote it.
            self.manifest.unlink(missing_ok=True)
            if self._final.exists():
                shutil.rmtree(self._final)
            if self.folder.exists():
                self.folder.rename(self._final)
            self._sweep()
            write_manifest()
            self._sealed = True
            if self.away is not None:
                self.away.sweep()  # under the lock: an attempt that takes over now has uploaded nothing yet
            self._owner.unlink()

    def leave(self) -> None:
        """Remove what this attempt has left, and only that; nothing after `replace`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.away is not None and not self._sealed:
            self.away.leave()
        if self._owns():
            with alone(self.manifest):
                if self._owns():
                    self._owner.unlink()

    def _owns(self) -> bool:
        try:
            return self._owner.read_text(encoding="utf-8") == self._name
        except OSError:
            return False

    def _sweep(self) -> None:
        """Remove what killed attempts left. One that still runs fails by it, which `require` then explains."""
        for folder in self._final.parent.glob(f"{STORE}.*{PART}"):
            shutil.rmtree(folder, ignore_errors=True)
        for file in self.manifest.parent.glob(f"{self.manifest.name}.*{PART}"):
            file.unlink(missing_ok=True)


@contextmanager
def claim(*manifests: Path, away: Mapping[Path, str | None] | None = None) -> Iterator[tuple[Attempt, ...]]:
    """Own stores from here on: for a job that computes for long before it writes.

    Without it a slow orphan that reaches its first store late would take it from the run that came after.
    away: ``s3://BUCKET/PREFIX`` by manifest, for stores whose files are not to lie beside it.
    """
    attempts: list[Attempt] = []
    try:
        for manifest in manifests:
            attempts.append(Attempt(manifest, (away or {}).get(manifest)))
        yield tuple(attempts)
    finally:
        for attempt in attempts:
            attempt.leave()
