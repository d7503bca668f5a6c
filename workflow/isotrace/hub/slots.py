"""At most so many downloads at a time, over all jobs that share a folder; a lock file a slot, freed when a job dies."""

import errno
import fcntl
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

_WAIT = 0.1


@contextmanager
def slot(folder: Path, number: int) -> Iterator[None]:
    """Hold one of ``number`` slots of ``folder`` while the body runs; wait for one to be free."""
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        streams = [stack.enter_context((folder / f"{i}.lock").open("w")) for i in range(number)]
        while not any(_taken(stream) for stream in streams):
            time.sleep(_WAIT)
        yield


def _taken(stream: IO[str]) -> bool:
    """Whether this process holds the slot now; always so where the file system knows no locks."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True
