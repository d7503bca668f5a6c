"""A store whose files lie in a bucket: uploaded under a name of the attempt's own, its manifest last.

The manifest in the bucket is the commit there; the one in the results folder, written after it, names the place.
"""

import json
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import zarr
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from isotrace.errors import DataError
from isotrace.recorded import Digest
from isotrace.storage.bucket import WORKERS, Bucket
from isotrace.storage.home import home

BEGUN = "begun"
MANIFEST = "manifest.json"
STORE = "store.zarr"


class Away:
    """Where an attempt at a store puts its files: ``URL/HOME/MODEL/CHECKPOINT/NAME``.

    manifest: ``.../cache/MODEL/CHECKPOINT.json``; url: ``s3://BUCKET/PREFIX``; name: of the attempt.
    Making it writes an empty object, so that a bucket which refuses is found before hours of computing.
    """

    def __init__(self, manifest: Path, url: str, name: str) -> None:
        cache, model = manifest.parents[1], manifest.parent.name
        self._checkpoint = Bucket(f"{url}/{home(cache)}/{model}/{manifest.stem}")
        self._name, self._whole = name, False
        self._checkpoint.put_bytes(b"", f"{name}/{BEGUN}")

    @property
    def url(self) -> str:
        """The folder of the store and its manifest."""
        return f"{self._checkpoint.url}/{self._name}"

    def upload(self, folder: Path, content: Mapping[str, Any], require: Callable[[], None]) -> None:
        """Put every file of a finished store there, and once all have arrived its manifest.

        content: of the manifest; require: raises where another attempt has taken over.
        """
        place, files = Bucket(self.url), content["files"]
        place.put((folder / name, f"{STORE}/{name}") for name in files)
        require()
        arrived = place.sizes()
        lost = [name for name, file in files.items() if arrived.get(f"{STORE}/{name}") != file["bytes"]]
        if lost:
            raise DataError(f"{self.url}/{STORE}/{lost[0]}: did not arrive whole; rerun")
        place.put_bytes(json.dumps(content, sort_keys=True).encode(), MANIFEST)
        place.remove([BEGUN])
        self._whole = True

    def sweep(self) -> None:
        """Remove what other attempts at this store have left; of this one too, unless it uploaded a whole store."""
        mine = f"{self._name}/"
        self._remove(lambda name: not (self._whole and name.startswith(mine)))

    def leave(self) -> None:
        """Remove what this attempt has left."""
        self._remove(lambda name: name.startswith(f"{self._name}/"))

    def _remove(self, chosen: Callable[[str], bool]) -> None:
        try:
            self._checkpoint.remove([name for name in self._checkpoint.sizes() if chosen(name)])
        except DataError as error:  # what is left over costs space alone, and the next attempt removes it
            print(f"isotrace: left over in the bucket: {error}")


class Fetched(LocalStore):
    """A folder of files fetched from a bucket, gone with the last array that reads it.

    What was not fetched at first is fetched when it is asked for: read as lost, an array would be filled with zeros.
    """

    def __init__(self, location: str, files: Mapping[str, Digest]) -> None:
        folder = Path(tempfile.mkdtemp(prefix="isotrace-rows-"))
        super().__init__(folder, read_only=True)
        self._finalizer = weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._place, self._files = Bucket(f"{location}/{STORE}"), files
        self._late = threading.Lock()

    def fetch(self, name: str) -> None:
        """Download one file and compare it with the manifest; `DataError` where it is not what was sealed."""
        part = self.root / f"{name}.part"
        if self._place.fetch(name, part) != self._files[name]:
            raise DataError(f"{self._place.url}/{name}: changed since it was sealed; capture again")
        part.replace(self.root / name)

    def files_below(self, prefix: str) -> list[str]:
        """Names of the store's files that start so, fetched or not."""
        return [name for name in self._files if name.startswith(prefix)]

    def require(self, name: str) -> None:
        """Fetch one file of the store unless it is here."""
        with self._late:
            if name in self._files and not (self.root / name).is_file():
                self.fetch(name)

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """One file or a part of it, fetched first if need be."""
        self.require(key)
        return await super().get(key, prototype, byte_range)

    def get_sync(
        self, key: str, *, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The same for callers outside of an event loop."""
        self.require(key)
        return super().get_sync(key, prototype=prototype, byte_range=byte_range)


def open_away(content: Mapping[str, Any], groups: Collection[str] | None) -> zarr.Group:
    """The root of a store in a bucket, with the files of the groups named (None: all) fetched into a scratch folder.

    content: of the manifest. `DataError` where a file is lost or changed.
    """
    store = Fetched(content["location"], content["files"])
    wanted = [name for name in content["files"] if _in(groups, name)]
    with ThreadPoolExecutor(WORKERS) as pool:
        for _ in pool.map(store.fetch, wanted):
            pass
    return zarr.open_group(store, mode="r", zarr_format=3)


def away_differences(content: Mapping[str, Any], groups: Collection[str] | None) -> list[str]:
    """What is lost, changed or foreign in a store in a bucket, one line a file; digests of the groups named."""
    place = Bucket(content["location"])
    found = {name.removeprefix(f"{STORE}/"): size for name, size in place.sizes().items() if name.startswith(STORE)}
    files, wrong, whole = content["files"], [], []
    for name, expected in files.items():
        if name not in found:
            wrong.append(f"{name} is lost")
        elif found[name] != expected["bytes"]:
            wrong.append(f"{name} changed its size")
        elif _in(groups, name):
            whole.append(name)
    with ThreadPoolExecutor(WORKERS) as pool:
        digests = pool.map(lambda name: place.digest(f"{STORE}/{name}"), whole)
        wrong += [f"{name} changed" for name, found in zip(whole, digests, strict=True) if found != files[name]]
    return wrong + [f"{name} is not in the manifest" for name in sorted(set(found) - set(files))]


def _in(groups: Collection[str] | None, name: str) -> bool:
    """Whether a file belongs to one of the groups, or to none of any."""
    return groups is None or "/" not in name or name.split("/")[0] in groups
