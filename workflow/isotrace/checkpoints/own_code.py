"""Python code that comes with a model: run only at the commit that the config pins, and only as it was fetched.

transformers' own mechanism (auto_map, trust_remote_code); one commit's code for a whole series is our choice.
"""

import json
import os
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrace.errors import DataError
from isotrace.filehash import file_sha256

DESCRIBED = ("config.json", "tokenizer_config.json")
"""Files whose ``auto_map`` names classes to import."""
KEY = "models.MODEL.source.remote_code"


def code_options(folder: Path, commit: str | None) -> dict[str, Any]:
    """What ``from_pretrained`` is told of a folder's own code: to run none, or that of ``commit``.

    DataError, naming the file, unless the folder's code is what ``prefetch.json`` says was fetched at that commit,
    and where it would be looked for in another repo. Call it before transformers is imported: where that copies code
    to is read then, and the shared cache is not ours to write.
    """
    if commit is None:
        return {"trust_remote_code": False}
    _require_fetched(folder, commit)
    for name in DESCRIBED:
        _require_here(folder / name)
    os.environ.setdefault("HF_MODULES_CACHE", _copies().name)
    return {"trust_remote_code": True, "code_revision": commit}


def wants_code(error: Exception) -> bool:
    """Whether loading failed because code of the model's own may not run."""
    return "trust_remote_code" in str(error)


def refused(folder: Path) -> DataError:
    """The one line for a model that cannot be loaded without code of its own."""
    return DataError(
        f"{folder}: needs Python code of its own, and none is run; for a series on the hub, read the code and pin its "
        f"commit: {KEY}: COMMIT"
    )


def _require_fetched(folder: Path, commit: str) -> None:
    manifest = folder / "prefetch.json"
    try:
        listed = json.loads(manifest.read_text(encoding="utf-8")).get("code")
    except (OSError, ValueError):
        listed = None
    if not listed or listed["commit"] != commit:
        raise DataError(f"{manifest}: lists no code of commit {commit[:12]}; fetch the series again")
    there = {file.relative_to(folder).as_posix() for file in folder.rglob("*.py")}
    strange = sorted(there ^ set(listed["files"]))
    strange += sorted(n for n in there & set(listed["files"]) if file_sha256(folder / n) != listed["files"][n])
    if strange:
        raise DataError(f"{folder / strange[0]}: not the code fetched at {commit[:12]}; fetch the series again")


def _require_here(file: Path) -> None:
    """``ORG/NAME--module.Class`` is code of another repo, at whatever commit lies in a cache."""
    if not file.is_file():
        return
    try:
        named = json.loads(file.read_text(encoding="utf-8")).get("auto_map") or {}
    except (ValueError, AttributeError):
        return
    flat = [value for one in dict(named).values() for value in (one if isinstance(one, list) else [one])]
    foreign = sorted(str(value).partition("--")[0] for value in flat if "--" in str(value))
    if foreign:
        raise DataError(
            f"{file}: takes its code from another repo, {foreign[0]}, which no commit pins; isotrace runs none"
        )


@cache
def _copies() -> "TemporaryDirectory[str]":
    """Where this process's copies of code lie; gone when it ends."""
    return TemporaryDirectory(prefix="isotrace-code-")
