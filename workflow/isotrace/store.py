"""Sealed Zarr stores: written under a temporary name, renamed, and only then given a manifest.

A store without its manifest, or that differs from it, is not a store. Layout: one group a bucket, arrays
over (site, token, feature), Zarr v3 with sharding, opened by ``xarray.open_datatree``.
"""

import hashlib
import json
import shutil
import uuid
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from isotrace.errors import DataError
from isotrace.filehash import file_sha256
from isotrace.grids import block_grid
from isotrace.ownership import PART, Attempt, store_path
from isotrace.recorded import Digest, Recorded
from isotrace.shards import COMPRESSOR, ShardWriter
from isotrace.storage.away import STORE, away_differences, open_away

SCHEMA_VERSION = 2


@contextmanager
def create(
    manifest: Path | Attempt, attributes: Mapping[str, Any], fingerprint: Mapping[str, Any]
) -> Iterator[zarr.Group]:
    """Yield an empty root group; seal the store when the body ends well, leave nothing when it does not.

    manifest: its path, or what `ownership.claim` yielded for it; attributes go to the root and the manifest;
    fingerprint holds params_digest, code_digest and versions.
    `DataError` when another attempt at the same store began meanwhile: only the last one seals.
    """
    attempt = manifest if isinstance(manifest, Attempt) else Attempt(manifest)
    try:
        attempt.require()
        store = Recorded(attempt.folder)
        root = zarr.open_group(store, mode="w", zarr_format=3)
        root.attrs.update(dict(attributes))
        yield root
        _consolidate(store)
        content = _content(attributes, fingerprint, _digests(store))
        if attempt.away is not None:
            content["location"] = attempt.away.url
            attempt.away.upload(attempt.folder, content, attempt.require)
            shutil.rmtree(attempt.folder)
        attempt.replace(lambda: write_json(attempt.manifest, content))
    except Exception:
        attempt.require()  # an attempt whose folder was removed fails in many ways, for this one reason
        raise
    finally:
        attempt.leave()


def _consolidate(store: Recorded) -> None:
    """Gather all metadata in the root, without which xarray warns on every opening."""
    with warnings.catch_warnings():
        # zarr says on writing that format 3 does not specify this yet; xarray and zarr both read it.
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        zarr.consolidate_metadata(store, zarr_format=3)


def seal_empty(
    manifest: Path | Attempt, *, attributes: Mapping[str, Any], fingerprint: Mapping[str, Any], reason: str
) -> None:
    """A tombstone: sealed, known to be empty for a reason; replaces whatever store was there."""
    content = _content(attributes, fingerprint, {}, reason)
    attempt = manifest if isinstance(manifest, Attempt) else Attempt(manifest)
    attempt.replace(lambda: write_json(attempt.manifest, content))


def _content(
    attributes: Mapping[str, Any], fingerprint: Mapping[str, Any], files: Mapping[str, Digest], reason: str = ""
) -> dict[str, Any]:
    """What a manifest says."""
    return {
        "schema_version": SCHEMA_VERSION,
        "status": "tombstone" if reason else "ok",
        "reason": reason,
        "attributes": dict(attributes),
        **fingerprint,
        "files": dict(files),
    }


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Sorted, readable JSON, complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid.uuid4().hex[:8]}{PART}")
    try:
        part.write_text(json.dumps(content, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def put(group: zarr.Group, name: str, values: np.ndarray, dims: tuple[str, ...], **attributes: Any) -> None:
    """Write one array with named dimensions, in one file where it is small; in a store that is being created."""
    text = values.dtype.kind in "UO"
    grid = None if text else block_grid(values.shape, values.itemsize)
    if grid is not None and grid.chunk != grid.shard:
        writer = ShardWriter(group, name, values.shape, values.dtype, dims, axis=0, grid=grid, attributes=attributes)
        writer.append(values)
        writer.close()
        return
    array = group.create_array(
        name,
        shape=values.shape,
        dtype="string" if text else values.dtype,
        chunks="auto" if grid is None else grid.chunk,
        compressors=COMPRESSOR,
        dimension_names=dims,
        attributes=attributes,
    )
    array[...] = values


def read_manifest(manifest: Path) -> dict[str, Any]:
    """The manifest's content; `DataError` when the store was never sealed or is of another schema."""
    try:
        content: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{manifest}: not a sealed store ({error}); rerun the job that writes it") from None
    if content.get("schema_version") != SCHEMA_VERSION:
        raise DataError(
            f"{manifest}: schema version {content.get('schema_version')}, this isotrace reads {SCHEMA_VERSION}; "
            f"remove the store and rerun"
        )
    return content


def is_tombstone(manifest: Path) -> bool:
    """Whether a store was sealed as empty by design."""
    return bool(read_manifest(manifest)["status"] != "ok")


def open_store(manifest: Path, groups: tuple[str, ...] | None = None) -> zarr.Group:
    """The root of a sealed store, after checking its files: all sizes, and digests of the groups named (None: all).

    Of a store in a bucket, these groups are fetched and checked.
    """
    content = read_manifest(manifest)
    if content["status"] != "ok":
        raise DataError(f"{manifest}: empty by design ({content['reason']})")
    if "location" in content:
        return open_away(content, groups)
    wrong = differences(manifest, content, groups)
    if wrong:
        raise DataError(f"{store_path(manifest)}: {wrong[0]}; remove {manifest} and rerun the job that writes it")
    return zarr.open_group(store_path(manifest), mode="r", zarr_format=3)


def differences(manifest: Path, content: Mapping[str, Any], groups: tuple[str, ...] | None = None) -> list[str]:
    """What is lost, changed or foreign in a store, one line a file; empty when it is what was sealed."""
    if content["status"] != "ok":
        return []
    if "location" in content:
        return away_differences(content, groups)
    root = store_path(manifest)
    wrong = []
    for name, expected in content["files"].items():
        file = root / name
        if not file.is_file():
            wrong.append(f"{name} is lost")
        elif file.stat().st_size != expected["bytes"]:
            wrong.append(f"{name} changed its size")
        elif (groups is None or name.split("/")[0] in groups) and file_sha256(file) != expected["sha256"]:
            wrong.append(f"{name} changed")
    foreign = set(_files(root)) - set(content["files"])
    return wrong + [f"{name} is not in the manifest" for name in sorted(foreign)]


def _files(root: Path) -> list[str]:
    return sorted(p.relative_to(root).as_posix() for p in root.rglob("*") if p.is_file())


def _digests(store: Recorded) -> dict[str, Digest]:
    """Size and digest of every file, as remembered from writing; `DataError` where the disk holds another size."""
    found: dict[str, Digest] = {}
    for name in _files(store.root):
        found[name] = store.digests[name]
        if (store.root / name).stat().st_size != found[name]["bytes"]:
            raise DataError(f"{store.root / name}: shorter or longer than it was written; look at the disk and rerun")
    lost = sorted(set(store.digests) - set(found))
    if lost:
        raise DataError(f"{store.root / lost[0]}: gone since it was written; look at the disk and rerun")
    return found


def digest(value: Any) -> str:
    """Sixteen hex digits of a plain value, by its sorted JSON."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def fingerprint(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says of its making: digests of params and code, versions of what computed it."""
    from importlib.metadata import version

    names = ("isotrace", "numpy", "torch", "transformers", "zarr")
    params = {k: v for k, v in spec.items() if k != "code"}
    return {
        "params_digest": digest(params),
        "code_digest": spec["code"],
        "versions": {name: version(name) for name in names},
    }


def manifests_below(path: Path) -> list[Path]:
    """Manifests of stores at, below or around a path; `DataError` when there is no store."""
    if path.is_file() and path.suffix == ".json" and STORE not in path.as_posix():
        return [path]
    below = [p for p in path.rglob("*.json") if STORE not in p.as_posix() and _is_manifest(p)]
    around = [p.with_suffix(".json") for p in (path, *path.parents) if p.name and p.with_suffix(".json").is_file()]
    found = below or [p for p in around if _is_manifest(p)][:1]
    if not found:
        raise DataError(f"{path}: no such store or folder")
    return found


def _is_manifest(path: Path) -> bool:
    try:
        return "schema_version" in json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return True
