"""A committed lock: digests of a finished study, which ``locked: true`` demands of every later run."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotrace.errors import ConfigError, DataError

COMMITTED = "config/locks/{model}.lock.json"
"""From the working directory, to be committed beside the config."""


def committed_lock(model: str) -> str:
    """The committed lock of a model; ConfigError where there is none."""
    path = COMMITTED.replace("{model}", model)
    if not Path(path).is_file():
        raise ConfigError(
            f"locked: true, but there is no {path}; finish the study with locked: false, "
            f"then run: isotrace lock --configfile FILE"
        )
    return path


def keep_locks(models: Sequence[str], results: Path) -> list[Path]:
    """Copy the locks of a finished study to where they are committed; `DataError` where one is not there yet."""
    locks = {model: results / "checkpoints" / f"{model}.lock.json" for model in models}
    for lock in locks.values():
        if not lock.is_file():
            raise DataError(f"{lock}: not there; finish the study first")
    kept = []
    for model, lock in locks.items():
        kept.append(Path(COMMITTED.replace("{model}", model)))
        kept[-1].parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(lock, kept[-1])
    return kept


def require_locked(found: dict[str, Any], committed: str | None) -> None:
    """`DataError`, a line a checkpoint, where tensors are not those of the committed lock; None demands nothing."""
    if committed is None:
        return
    try:
        kept = {entry["id"]: entry for entry in json.loads(Path(committed).read_text(encoding="utf-8"))["checkpoints"]}
    except (OSError, ValueError, KeyError) as error:
        raise DataError(f"{committed}: not a lock ({type(error).__name__}: {error}); run isotrace lock again") from None
    lines = [f"  {entry['id']}: {_difference(entry, kept)}" for entry in found["checkpoints"]]
    wrong = [line for line in lines if not line.endswith(": ")]
    if wrong:
        raise DataError(
            "\n".join([f"locked: {len(wrong)} checkpoints of {found['model']} differ from {committed}", *wrong])
        )


def _difference(entry: dict[str, Any], kept: dict[str, Any]) -> str:
    if entry["id"] not in kept:
        return "not in it"
    before, now = kept[entry["id"]]["tensors_digest"], entry["tensors_digest"]
    return "" if before == now else f"tensors {_short(now)} now, {_short(before)} then"


def _short(digest: str | None) -> str:
    return "unreadable" if digest is None else f"{digest[:12]}…"
