"""Checkpoint folders on this machine, found by a pattern such as ``runs/a/checkpoint-{step}``; our choice.

Runs while a workflow is parsed, so nothing but the standard library is imported; contents are left to ``audit``.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isotrace.checkpoints.labels import Label, checkpoint_ids, count
from isotrace.errors import ConfigError

_STEP = "{step}"
Holds = Callable[[Path], bool]
_NUMBER = r"(?P<step>\d+(?:\.\d+)?[kKMB]?)"


@dataclass(frozen=True)
class Found:
    """One checkpoint folder: its id (``step{N}``), optimiser step, and path as the pattern spells it."""

    id: str
    step: int
    path: str


@dataclass(frozen=True)
class LeftOut:
    """What looks like one of the series but is none: where, the name that tells it from the others, and why."""

    path: str
    name: str
    reason: str


def discover(pattern: str, *, holds: Holds = Path.is_dir) -> list[Found]:
    """The folders that a pattern with one ``{step}`` finds, by step as a number; or the paths that ``holds`` accepts.

    A folder that is there but damaged is found: its audit says what is wrong with it, in the tables too.
    Names that are left out are listed by ``left_out``. ConfigError if the pattern has no or several ``{step}``.
    """
    labels, paths = [], []
    for path, match in _candidates(pattern):
        if match is not None and holds(path):
            labels.append(Label(text=_step_part(path, pattern), step=count(match["step"])))
            paths.append(str(path))
    found = [
        Found(identifier, label.step, path)
        for identifier, label, path in zip(checkpoint_ids(labels), labels, paths, strict=True)
    ]
    return sorted(found, key=lambda item: (item.step, item.id))


def left_out(pattern: str, *, holds: Holds = Path.is_dir) -> list[LeftOut]:
    """Temporary folders (``tmp-checkpoint-500``), files and names without a number, each with the reason."""
    out = []
    for path, match in _candidates(pattern):
        name = _step_part(path, pattern)
        if match is None:
            out.append(LeftOut(str(path), name, "half-written or foreign: its name is not the pattern with a number"))
        elif not holds(path):
            out.append(LeftOut(str(path), name, "a folder and not a file" if path.is_dir() else "not a folder"))
    return sorted(out, key=lambda item: item.path)


def _candidates(pattern: str) -> list[tuple[Path, re.Match[str] | None]]:
    """Everything beside the numbered folders whose name contains the pattern's fixed text."""
    if pattern.count(_STEP) != 1:
        raise ConfigError(f"local pattern {pattern!r}: write {_STEP} once where the step stands, as checkpoint-{_STEP}")
    parts = Path(pattern).expanduser().parts
    at = next(i for i, part in enumerate(parts) if _STEP in part)
    parent, below = Path(*parts[:at]), Path(*parts[at + 1 :])
    before, after = (re.escape(piece) for piece in parts[at].split(_STEP))
    whole, near = re.compile(before + _NUMBER + after), re.compile(before + ".*" + after)
    if not parent.is_dir():
        return []
    names = sorted(entry.name for entry in parent.iterdir() if near.search(entry.name))
    return [(parent / name / below, whole.fullmatch(name)) for name in names]


def _step_part(path: Path, pattern: str) -> str:
    below = len(Path(pattern).parts) - next(i for i, part in enumerate(Path(pattern).parts) if _STEP in part)
    return path.parts[-below]
