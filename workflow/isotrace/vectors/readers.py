"""Arrays of a dump by name, out of .npy files, .npz, .safetensors or Zarr; nothing is ever unpickled.

Which formats are read is our choice; a file of any of them may come from anywhere, so objects are refused unread.
"""

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError

Index = int | None
"""One entry of the first axis, or None for everything."""


class Dump(ABC):
    """The arrays of one checkpoint; every method raises DataError for an array that is missing or unreadable."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @abstractmethod
    def names(self) -> list[str]:
        """Names of all arrays."""

    @abstractmethod
    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        """Shape and dtype, as numpy names it (``bfloat16`` beside those), without reading numbers."""

    @abstractmethod
    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        """The array, or its part at ``index`` of the first axis."""

    @abstractmethod
    def files(self, name: str) -> list[Path]:
        """The files that hold an array."""

    def require(self, name: str) -> None:
        """DataError that names what there is, where there is no such array."""
        if name not in self.names():
            raise DataError(f"{self.path}: no array {name!r}; there are {', '.join(self.names()) or 'none'}")


def open_dump(path: str | Path) -> Dump:
    """The dump at a path, by its ending; DataError where it cannot be opened."""
    where = Path(path)
    kinds: dict[str, type[Dump]] = {".npz": _Npz, ".safetensors": _Safetensors, ".zarr": _Zarr}
    if not where.exists():
        raise DataError(f"{where}: gone since it was found; look at the disk and rerun")
    return kinds.get(where.suffix, _Folder)(where)


def read_npy(file: Path) -> NDArray[Any]:
    """A .npy file, mapped and not read; DataError for a truncated one or one of objects."""
    try:
        array: NDArray[Any] = np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise DataError(_broken(str(file), error)) from error
    return array


def _broken(what: str, error: Exception) -> str:
    if "allow_pickle" in str(error) or "Python objects" in str(error):
        return f"{what}: holds Python objects, which are never unpickled; save numbers"
    return f"{what}: truncated or not readable ({(str(error).strip() or repr(error)).splitlines()[0]})"


class _Folder(Dump):
    """A folder with a NAME.npy an array."""

    def names(self) -> list[str]:
        return sorted(file.stem for file in self.path.glob("*.npy"))

    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        array = self._open(name)
        return array.shape, array.dtype.name

    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        array = self._open(name)
        return np.asarray(array if index is None else array[index])

    def files(self, name: str) -> list[Path]:
        return [self.path / f"{name}.npy"]

    def _open(self, name: str) -> NDArray[Any]:
        self.require(name)
        return read_npy(self.files(name)[0])


class _Npz(Dump):
    """One archive; it can only be read an array at a time, so the last one is kept."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._last: tuple[str, NDArray[Any]] | None = None
        try:
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                self._names = sorted(archive.files)
        except Exception as error:  # zipfile raises many kinds for a damaged archive
            raise DataError(_broken(str(path), error)) from error

    def names(self) -> list[str]:
        return self._names

    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        array = self.read(name)
        return array.shape, array.dtype.name

    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        self.require(name)
        if self._last is None or self._last[0] != name:
            self._last = None  # before the next is read, so that two are never held
            self._last = name, self._load(name)
        array = self._last[1]
        return array if index is None else array[index]

    def files(self, name: str) -> list[Path]:
        return [self.path]

    def _load(self, name: str) -> NDArray[Any]:
        try:
            with self.path.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
                return np.asarray(archive[name])
        except Exception as error:  # zipfile and zlib raise many kinds for a damaged archive
            raise DataError(_broken(f"{self.path}: {name}", error)) from error


_NAMES = {"F16": "float16", "F32": "float32", "F64": "float64", "BF16": "bfloat16", "BOOL": "bool"}
_NAMES |= {f"{kind}{bits}": f"{word}{bits}" for kind, word in (("I", "int"), ("U", "uint")) for bits in (8, 16, 32, 64)}


class _Safetensors(Dump):
    """One file of tensors."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        from safetensors import SafetensorError, safe_open

        try:
            with safe_open(str(path), "numpy") as tensors:
                names = sorted(tensors.keys())
                self._about = {name: self._header(tensors.get_slice(name)) for name in names}
        except (OSError, SafetensorError) as error:
            raise DataError(_broken(str(path), error)) from error

    @staticmethod
    def _header(part: Any) -> tuple[tuple[int, ...], str]:
        return tuple(part.get_shape()), _NAMES.get(part.get_dtype(), part.get_dtype())

    def names(self) -> list[str]:
        return list(self._about)

    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        self.require(name)
        return self._about[name]

    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        from safetensors import safe_open

        wide = self.about(name)[1] == "bfloat16"  # numpy has none, and importing torch takes a second
        with safe_open(str(self.path), "pt" if wide else "numpy") as tensors:
            part = tensors.get_tensor(name) if index is None else tensors.get_slice(name)[index]
        array: NDArray[Any] = part.float().numpy() if wide else part
        return array

    def files(self, name: str) -> list[Path]:
        return [self.path]


class _Zarr(Dump):
    """A Zarr group, format 2 or 3."""

    def names(self) -> list[str]:
        metadata = ("zarr.json", ".zarray")
        return sorted(p.name for p in self.path.iterdir() if p.is_dir() and any((p / m).is_file() for m in metadata))

    def about(self, name: str) -> tuple[tuple[int, ...], str]:
        array = self._open(name)
        return tuple(array.shape), str(array.dtype)

    def read(self, name: str, index: Index = None) -> NDArray[Any]:
        array = self._open(name)
        try:
            return np.asarray(array[...] if index is None else array[index])
        except Exception as error:  # codecs raise many kinds for a damaged chunk
            raise DataError(_broken(f"{self.path}/{name}", error)) from error

    def files(self, name: str) -> list[Path]:
        return sorted(file for file in (self.path / name).rglob("*") if file.is_file())

    def _open(self, name: str) -> Any:
        import zarr

        self.require(name)
        place = self.path / name
        for file in (place / "zarr.json", place / ".zarray"):
            # Format 2 knows object arrays and a pickle codec, which would run whatever the chunk says.
            if file.is_file() and _holds_objects(file):
                raise DataError(f"{place}: holds Python objects, which are never unpickled; save numbers")
        try:
            return zarr.open_array(place, mode="r")
        except Exception as error:  # zarr raises many kinds for damaged metadata
            raise DataError(_broken(str(place), error)) from error


def _holds_objects(file: Path) -> bool:
    try:
        text = file.read_text(encoding="utf-8")
        dtype = str(json.loads(text).get("dtype", ""))
    except (OSError, ValueError, AttributeError):
        return False  # damaged: opening it says so
    return "pickle" in text or "O" in dtype
