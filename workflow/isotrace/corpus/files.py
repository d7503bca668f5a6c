"""The files of a corpus: names, globs and files inside installed packages, found without reading them.

Imported while the workflow is parsed, so it needs nothing but the standard library.
"""

import bz2
import gzip
import importlib.util
import os
from collections.abc import Sequence
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import IO

from isotrace.errors import DataError

_PACKAGED = "python:"


@dataclass(frozen=True)
class SourceFile:
    """A file by the name that the config and the manifest use, and where it is on this machine."""

    name: str
    path: Path


def source_files(paths: Sequence[str]) -> list[SourceFile]:
    """Every file that the paths name, globs expanded and sorted; DataError for one that is missing or empty."""
    files = [file for path in paths for file in _expand(path)]
    for file in files:
        if not file.path.is_file():
            raise DataError(f"{file.name}: no such file; check the corpus paths")
        if file.path.stat().st_size == 0:
            raise DataError(f"{file.name}: the file is empty; download it again or take it out of the paths")
    if not files:
        raise DataError("the corpus has no paths; name at least one file")
    return files


def opened(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked by its suffix (.bz2, .gz)."""
    if path.suffix == ".bz2":
        return bz2.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _expand(path: str) -> list[SourceFile]:
    if path.startswith(_PACKAGED):
        return [SourceFile(path, _packaged(path))]
    if not has_magic(path):
        return [SourceFile(path, Path(os.path.expanduser(path)))]
    found = sorted(name for name in glob(os.path.expanduser(path), recursive=True) if os.path.isfile(name))
    if not found:
        raise DataError(f"{path}: the pattern matches no file; check the corpus paths")
    return [SourceFile(name, Path(name)) for name in found]


def _packaged(path: str) -> Path:
    package, _, relative = path.removeprefix(_PACKAGED).partition("/")
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise DataError(f"{path}: the package {package!r} is not installed; pip install it")
    return Path(found.submodule_search_locations[0]) / relative
