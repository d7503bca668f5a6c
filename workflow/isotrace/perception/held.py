"""Vectors that a pass has just made, in the form of a dump: the stores of both are written by the same code."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isotrace.vectors.readers import Dump, Index


class Held(Dump):
    """Arrays in memory, by name."""

    def __init__(self, path: Path, arrays: dict[str, NDArray[Any]]) -> None:
        super().__init__(path)
        self._arrays = arrays

    def names(self) -> list[str]:
        return sorted(self._arrays)

    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        self.require(name)
        return self._arrays[name].shape, self._arrays[name].dtype.name

    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        self.require(name)
        return self._arrays[name] if index is None else self._arrays[name][index]

    def files(self, name: str) -> list[Path]:
        return []
