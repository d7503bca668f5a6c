"""Checkpoints on this machine: the pattern of their folders' names, and what the files in them tell.

Our choice: the number that most names have in common at one place is the step.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from isotrace.checkpoints.local import discover, left_out
from isotrace.draft.facts import Facts, loss_of, read_json, span
from isotrace.errors import ConfigError
from isotrace.sources.series import tokenizer_file

STEP = "{step}"
_NUMBER = re.compile(r"\d+(?:\.\d+)?[kKMB]?(?![A-Za-z0-9])")
_WORD = re.compile(r"(step|checkpoint|ckpt|iter)[-_]?$", re.IGNORECASE)
_CHECKPOINT = ("config.json", "model*.safetensors", "pytorch_model*.bin")


def is_checkpoint(path: Path) -> bool:
    """Whether a folder holds a config or weights."""
    return path.is_dir() and any(next(path.glob(name), None) for name in _CHECKPOINT)


def pattern_of(names: Iterable[str]) -> str | None:
    """The name with ``{step}`` that most of the names follow; None where none has a number."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for name in names:
        for number in _NUMBER.finditer(name):
            found[name[: number.start()], name[number.end() :]] += 1
    if not found:
        return None
    before, after = max(found, key=lambda ends: (found[ends], bool(_WORD.search(ends[0])), len(ends[0]), ends))
    return f"{before}{STEP}{after}"


def read_folder(place: str, tokenizer: str | None = None) -> Facts:
    """What a Trainer's output folder, or a pattern of folders, holds; ConfigError, one line, where it is no series."""
    pattern = place if STEP in place else _pattern_in(place)
    found = discover(pattern)
    if not found:
        raise ConfigError(f"new: no folder matches {pattern!r}")
    first = next((Path(f.path) for f in found if (Path(f.path) / "config.json").is_file()), None)
    if first is None:
        raise ConfigError(f"new: none of the {len(found)} folders that match {pattern!r} has a config.json")
    config = read_json(first / "config.json")
    loss = loss_of(config, read_json(first / "tokenizer_config.json"))
    steps = tuple(f.step for f in found)
    notes = {"path": span(steps)}
    beside = [one.name for one in left_out(pattern)]
    if beside:
        notes["path"] += f"; left out: {', '.join(beside)}"
    folder = tokenizer or _tokenizer(first, Path(pattern).parent, "" if loss is None else loss.modality)
    total, notes["total_steps"] = _total([Path(f.path) for f in found])
    return Facts("local", pattern, steps, loss, total, folder, config=config, notes=notes)


def _pattern_in(place: str) -> str:
    folder = Path(place).expanduser()
    names = [entry.name for entry in sorted(folder.iterdir()) if is_checkpoint(entry)]
    pattern = pattern_of(names)
    if pattern is None:
        what = "is one checkpoint, and a series needs" if is_checkpoint(folder) else "holds no"
        raise ConfigError(f"new: {place} {what} folders of checkpoints with their step in the name (checkpoint-500)")
    return f"{place.rstrip('/')}/{pattern}"


def _tokenizer(first: Path, beside: Path, modality: str) -> str | None:
    """None where the first checkpoint has its own; else the folder around the checkpoints, where it lies there."""
    media = modality in ("image", "audio")

    def has(folder: Path) -> bool:
        return (folder / "preprocessor_config.json").is_file() if media else tokenizer_file(str(folder)) is not None

    return None if has(first) or not has(beside) else str(beside)


def _total(folders: list[Path]) -> tuple[int | None, str]:
    """Steps of the whole training as a Trainer's state says, and the words for it."""
    state = read_json(folders[-1] / "trainer_state.json")
    if isinstance(state.get("max_steps"), int) and state["max_steps"] > 0:
        return state["max_steps"], "max_steps in trainer_state.json"
    return None, ""
