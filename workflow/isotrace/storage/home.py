"""The name under which a results folder keeps its objects in a bucket, so that no folder removes another's.

Our choice: drawn once and kept in the folder with its own inode. In a copy of the folder the inode differs, and the
copy, which reads the same objects, draws a name of its own before it writes or removes any.
"""

import os
import uuid
from pathlib import Path

from isotrace.locks import alone

FILE = ".home"


def home(cache: Path) -> str:
    """The name for ``results/cache``, drawn if need be."""
    cache.mkdir(parents=True, exist_ok=True)
    with alone(cache / FILE):
        known = known_home(cache)
        if known is None:
            known = uuid.uuid4().hex[:16]
            (cache / FILE).unlink(missing_ok=True)
            with (cache / FILE).open("w", encoding="utf-8") as stream:
                stream.write(f"{known} {os.fstat(stream.fileno()).st_ino}")
    return known


def known_home(cache: Path) -> str | None:
    """The name that was drawn for this very folder; None where none was, or where the folder is a copy."""
    try:
        with (cache / FILE).open(encoding="utf-8") as stream:
            name, inode = stream.read().split()
            return name if os.fstat(stream.fileno()).st_ino == int(inode) else None
    except (OSError, ValueError):
        return None
