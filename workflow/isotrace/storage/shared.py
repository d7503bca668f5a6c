"""Files of the hub that studies keep in common: the first that needs one fetches it, all others link to it.

Our choice: one file a repo, commit and path, read-only, put in place whole; a lock a file while it is being fetched.
"""

import os
import shutil
import stat
import uuid
from collections.abc import Callable
from pathlib import Path

from isotrace.locks import alone


def path_in_repo(subfolder: str | None, name: str) -> str:
    """Where a file of a download lies in its repo."""
    return f"{subfolder}/{name}" if subfolder else name


def shared_file(place: Path, repo: str, commit: str, path: str) -> Path:
    """Where a file of a repo at a commit lies in the common folder."""
    return place / repo.replace("/", "--") / commit / path


def taken(place: Path, target: Path, here: Path, *, whole: Callable[[Path], bool], fetch: Callable[[], Path]) -> Path:
    """``here``, another name of ``target`` below ``place``, which ``fetch`` brings unless it is there and ``whole``.

    whole: whether a file is the one that was asked for; fetch: its path once downloaded and checked.
    One process at a time fetches a file; one that is there needs no lock, nor the right to write into ``place``.
    """
    if not _there(target, whole):
        _mkdir(target.parent, place)
        with alone(target):
            if not _there(target, whole):
                _keep(fetch(), target)
    here.parent.mkdir(parents=True, exist_ok=True)
    here.unlink(missing_ok=True)
    try:
        os.link(target, here)
    except OSError:  # another file system, or a file of another user's
        here.symlink_to(target.absolute())
    return here


def _there(target: Path, whole: Callable[[Path], bool]) -> bool:
    return target.is_file() and whole(target)


def _keep(file: Path, target: Path) -> None:
    """Put a file in place, whole at once and read-only."""
    part = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.part")
    try:
        try:
            os.link(file, part)
        except OSError:
            shutil.copyfile(file, part)
        part.chmod(0o444)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _mkdir(folder: Path, place: Path) -> None:
    """Make folders below ``place`` with its mode, so that a group which may write there may write in them too."""
    place.mkdir(parents=True, exist_ok=True)
    mode = stat.S_IMODE(place.stat().st_mode)
    for parent in reversed([folder, *folder.parents][: len(folder.relative_to(place).parts)]):
        if not parent.exists():
            parent.mkdir(exist_ok=True)
            parent.chmod(mode)
