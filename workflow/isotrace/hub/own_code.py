"""The Python files of a repo at the commit that a config pins, with their digests, for the series file.

They are small, and the hub states no sha256 of small files: each is fetched once and hashed here.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrace.errors import DataError
from isotrace.filehash import file_sha256
from isotrace.hub.client import Client
from isotrace.settings.sources import Hub
from isotrace.storage.shared import path_in_repo


def pinned_code(name: str, source: Hub, client: Client) -> dict[str, Any] | None:
    """{repo, revision, subfolder, commit, files: {name: {bytes, sha256}}}; None where the config pins no code.

    DataError where there is no code at that commit, or no such commit.
    """
    commit = source.remote_code
    if commit is None:
        return None
    tree = client.files(source.repo, commit, source.subfolder)
    names = sorted(file for file in tree if file.endswith(".py"))
    if not names:
        raise DataError(
            f"models.{name}.source.remote_code: {source.repo} holds no *.py at {commit[:12]}; give the commit (40 hex "
            f"digits) whose code you have read, or leave the key out"
        )
    with TemporaryDirectory() as folder:
        files = {file: _listed(client, source, commit, file, Path(folder)) for file in names}
    place = {"repo": source.repo, "revision": commit, "subfolder": source.subfolder, "commit": commit}
    return place | {"files": files}


def _listed(client: Client, source: Hub, commit: str, name: str, folder: Path) -> dict[str, Any]:
    found = client.download(source.repo, commit, path_in_repo(source.subfolder, name), folder)
    return {"bytes": found.stat().st_size, "sha256": file_sha256(found)}
