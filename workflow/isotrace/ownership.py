"""Who may seal a store: the attempt that began last. A killed workflow can leave a job that writes on (our choice).

Each attempt writes into a folder of its own name. It is the owner while ``.owner`` beside the store holds its name;
to take over and to seal happen under one lock, so a store is replaced by its owner alone.
"""

import fcntl
import os
import shutil
import socket
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from isotrace.errors import DataError

STORE = "store.zarr"
OWNER = ".owner"
PART = ".part"


def store_path(manifest: Path) -> Path:
    """``.../step8.json`` -> ``.../step8/store.zarr``."""
    return manifest.with_suffix("") / STORE


class Attempt:
    """One attempt at writing the store of a manifest; it owns the store from its making until another is made.

    What reads as a store is unsealed at once: from here on only a whole new one takes its place.
    """

    def __init__(self, manifest: Path) -> None:
        self.manifest = manifest
        self._final = store_path(manifest)
        self._name = f"{socket.gethostname()}.{os.getpid()}.{uuid.uuid4().hex[:8]}"
        self.folder = self._final.with_name(f"{STORE}.{self._name}{PART}")
        self._owner = self._final.with_name(OWNER)
        with _alone(manifest):
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

        An attempt that made no folder leaves no store, as a tombstone does.
        """
        with _alone(self.manifest):
            self.require()
            # Gone since the taking over; a manifest must never stand beside other contents, whoever wrote it.
            self.manifest.unlink(missing_ok=True)
            if self._final.exists():
                shutil.rmtree(self._final)
            if self.folder.exists():
                self.folder.rename(self._final)
            self._sweep()
            write_manifest()
            self._owner.unlink()

    def leave(self) -> None:
        """Remove what this attempt has left, and only that; nothing after `replace`."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self._owns():
            with _alone(self.manifest):
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
def claim(*manifests: Path) -> Iterator[tuple[Attempt, ...]]:
    """Own stores from here on: for a job that computes for long before it writes.

    Without it a slow orphan that reaches its first store late would take it from the run that came after.
    """
    attempts: list[Attempt] = []
    try:
        for manifest in manifests:
            attempts.append(Attempt(manifest))
        yield tuple(attempts)
    finally:
        for attempt in attempts:
            attempt.leave()


@contextmanager
def _alone(manifest: Path) -> Iterator[None]:
    """Hold the lock of one store; the lock's file is gone afterwards. Without locks (some NFS, Lustre) just go on."""
    file = manifest.with_name(f".{manifest.name}.lock")
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor = _locked(file)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(file: Path) -> int:
    """An open descriptor that holds the lock."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            return descriptor
        # Who held the lock before removed the file: a lock on it keeps nobody out any more.
        if file.exists() and os.path.samestat(os.fstat(descriptor), file.stat()):
            return descriptor
        os.close(descriptor)
