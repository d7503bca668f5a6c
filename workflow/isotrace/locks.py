"""One process at a time at a file, over all machines that share it; the lock goes when its holder dies (our choice)."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock of one file; the lock's file is gone afterwards. Without locks (some NFS, Lustre) just go on."""
    file = path.with_name(f".{path.name}.lock")
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
        descriptor = _opened(file)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            return descriptor
        # Who held the lock before removed the file: a lock on it keeps nobody out any more.
        if _is_file_of(descriptor, file):
            return descriptor
        os.close(descriptor)


def _is_file_of(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.stat())
    except FileNotFoundError:
        return False


def _opened(file: Path) -> int:
    try:
        return os.open(file, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:
        return os.open(file, os.O_RDONLY)  # another user holds it
