"""Fetch a checkpoint's files at its commit, each checked against the series file before anything reads it.

Downloads go to a folder of their own, so that a killed job keeps the files it has; the client's cache is not used.
"""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from isotrace.errors import DataError
from isotrace.filehash import file_sha256
from isotrace.hub.client import Client
from isotrace.hub.slots import slot
from isotrace.storage.shared import path_in_repo, shared_file, taken
from isotrace.store import write_json

MANIFEST = "prefetch.json"
PARTIAL = ".prefetch"
SPARE = 2**28
"""Bytes that stay free on the disk."""


def prefetch(
    download: dict[str, Any],
    folder: Path,
    model: str,
    *,
    code: dict[str, Any] | None = None,
    downloads: int = 4,
    shared: Path | None = None,
    pause: float = 1.0,
) -> None:
    """Put the files of one checkpoint into ``folder``, with ``prefetch.json`` that says what they are.

    download: repo, revision, commit, subfolder, files {name: {bytes, sha256 or None}}, as the series file lists them;
    code: the same of Python files, at a commit of their own; downloads: files at a time, over all jobs of this results
    folder; shared: a folder that keeps them for other studies too; pause: first wait before another try, in seconds.
    `DataError` of one line for a commit that is not known yet, a file that is not what was listed, too small a disk.
    """
    partial, slots = folder.with_name(PARTIAL) / folder.name, folder.parents[1] / PARTIAL
    how: Any = {"downloads": downloads, "shared": shared, "pause": pause}
    files = fetch(download, partial, model, slots, **how)
    if code is not None:
        files |= fetch(code, partial / "code", model, slots, **how)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, path in files.items():
        path.replace(folder / name)
    write_json(folder / MANIFEST, manifest(download, folder, code))
    shutil.rmtree(partial, ignore_errors=True)


def prefetch_beside(
    downloads_of: list[dict[str, Any]],
    folder: Path,
    model: str,
    *,
    code: dict[str, Any] | None = None,
    downloads: int = 4,
    shared: Path | None = None,
) -> None:
    """Put small files of several places into one folder: the tokenizer of a series, its config.json and its code."""
    partial = folder.with_name(PARTIAL) / folder.name
    for i, download in enumerate([*downloads_of, *([code] if code else [])]):
        slots = folder.parents[1] / PARTIAL
        files = fetch(download, partial / str(i), model, slots, downloads=downloads, shared=shared)
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            path.replace(folder / name)
    write_json(folder / MANIFEST, manifest(downloads_of[0], folder, code))
    shutil.rmtree(partial, ignore_errors=True)


def fetch(
    download: dict[str, Any],
    partial: Path,
    model: str,
    slots: Path,
    *,
    downloads: int,
    shared: Path | None = None,
    pause: float = 1.0,
) -> dict[str, Path]:
    """The files below ``partial``, by name, downloaded unless they are there or in ``shared``, and checked."""
    commit, files = download["commit"], download["files"]
    if commit is None:
        raise DataError(
            f"{download['repo']} {download['revision']}: no commit in the series file yet; where there is a network, "
            f"run: isotrace resolve {model} --configfile FILE"
        )
    partial.mkdir(parents=True, exist_ok=True)
    repo, client = download["repo"], Client(pause=pause)
    paths = {name: path_in_repo(download["subfolder"], name) for name in files}
    common = {name: shared_file(shared, repo, commit, path) for name, path in paths.items()} if shared else {}
    _require_space({name: file for name, file in files.items() if not _is_there(common.get(name))}, partial)

    def downloaded(name: str) -> Path:
        with slot(slots, downloads):
            found = client.download(repo, commit, paths[name], partial)
        _require_same(found, files[name], f"{repo} {paths[name]} at {commit[:12]}")
        return found

    def one(name: str) -> Path:
        if shared is None:
            return downloaded(name)
        listed, here = files[name], partial / paths[name]
        return taken(
            shared, common[name], here, whole=lambda file: not _wrong(file, listed), fetch=lambda: downloaded(name)
        )

    with _own_caches(partial), ThreadPoolExecutor(downloads) as pool:
        return dict(zip(files, pool.map(one, files), strict=True))


def manifest(download: dict[str, Any], folder: Path, code: dict[str, Any] | None = None) -> dict[str, Any]:
    """What ``prefetch.json`` says: the origin, size and digest of every file that is there, which of them are code."""
    names = sorted(file.name for file in folder.iterdir() if file.is_file() and file.name != MANIFEST)
    files = {name: {"bytes": (folder / name).stat().st_size, "sha256": file_sha256(folder / name)} for name in names}
    origin = {key: download[key] for key in ("repo", "revision", "subfolder", "commit")} | {"files": files}
    if code is None:
        return origin
    listed = {name: file["sha256"] for name, file in code["files"].items()}
    return origin | {"code": {"commit": code["commit"], "files": listed}}


def _require_space(files: dict[str, Any], folder: Path) -> None:
    there = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    wanted = sum(file["bytes"] for file in files.values()) - there
    free = shutil.disk_usage(folder).free
    if wanted + SPARE > free:
        raise DataError(
            f"{folder}: {wanted / 1e9:.2f} GB to fetch, {free / 1e9:.2f} GB free; free space, take fewer checkpoints "
            f"(revisions.take), or set clean: after_capture"
        )


def _require_same(path: Path, listed: dict[str, Any], what: str) -> None:
    """`DataError` unless size and sha256 are those listed; the file goes, so that a rerun fetches it again."""
    if wrong := _wrong(path, listed):
        path.unlink()
        raise DataError(f"hub: {what}: not the file that the series file lists ({wrong}); rerun, or resolve again")


def _wrong(path: Path, listed: dict[str, Any]) -> str:
    """How a file differs in size or sha256 from what is listed; empty where it does not."""
    size = path.stat().st_size
    if size != listed["bytes"]:
        return f"{size} bytes, {listed['bytes']} listed"
    if listed["sha256"] is not None and (found := file_sha256(path)) != listed["sha256"]:
        return f"sha256 {found[:12]}…, {listed['sha256'][:12]}… listed"
    return ""


def _is_there(file: Path | None) -> bool:
    return file is not None and file.is_file()


@contextmanager
def _own_caches(folder: Path) -> Iterator[None]:
    """Chunks that the transfer library keeps stay here as well, not in the home folder."""
    before = os.environ.get("HF_XET_CACHE")
    os.environ["HF_XET_CACHE"] = str(folder / ".cache" / "xet")
    try:
        yield
    finally:
        if before is None:
            del os.environ["HF_XET_CACHE"]
        else:
            os.environ["HF_XET_CACHE"] = before
