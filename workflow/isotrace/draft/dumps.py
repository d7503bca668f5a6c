"""Dumped vectors: the pattern of the dumps, and which of their arrays is what, by name.

Our choice: only usual names are recognised; any other array is named by the user.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from isotrace.checkpoints.local import discover
from isotrace.draft.facts import Facts, Loss, span
from isotrace.draft.folder import STEP, pattern_of
from isotrace.errors import ConfigError
from isotrace.sources.vectors import holds_dump
from isotrace.vectors.readers import Dump, open_dump

ENDINGS = (".npz", ".safetensors", ".zarr")
ROLES = {
    "activations": r"act(ivation)?s?|hidden(_states?)?|vectors?|x",
    "gradients": r"grad(ient)?s?",
    "token_id": r"(input|token)_ids?|tokens?|ids?",
    "sequence": r"seq(uence)?s?(_ids?)?|doc(ument)?s?",
    "position": r"pos(ition)?s?(_ids?)?",
    "target_id": r"targets?(_ids?)?|labels?",
    "loss": r"loss(es)?|nll",
    "split": r"split",
}
"""What an array is -> the names by which it is known."""


def is_dump(path: Path) -> bool:
    """Whether this is a file or folder of arrays."""
    if path.suffix in (".npz", ".safetensors"):
        return path.is_file()
    return path.is_dir() and (path.suffix == ".zarr" or next(path.glob("*.npy"), None) is not None)


def read_dumps(place: str, given: Mapping[str, str]) -> Facts:
    """What a folder or pattern of dumps holds; ``given`` names arrays that are not recognised. ConfigError else."""
    pattern = place if STEP in place else _pattern_in(place)
    found = discover(pattern, holds=holds_dump(pattern))
    if not found:
        raise ConfigError(f"new: no dump matches {pattern!r}")
    unknown = sorted(set(given) - set(ROLES))
    if unknown:
        raise ConfigError(f"new --array: {unknown[0]!r} is not one of {', '.join(ROLES)}")
    dump = open_dump(found[0].path)
    for name in given.values():
        dump.require(name)
    arrays = {**_recognised(dump), **given}
    if "activations" not in arrays:
        raise ConfigError(
            f"new: which array of {found[0].path} holds the activations? --array activations=NAME, with NAME one of "
            f"{', '.join(dump.names()) or 'none'}"
        )
    steps = tuple(one.step for one in found)
    shape = " x ".join(map(str, dump.about(arrays["activations"])[0]))
    notes = {"path": span(steps), "arrays": f"of {', '.join(dump.names())}; {arrays['activations']} is {shape}"}
    config = {"hidden_size": dump.about(arrays["activations"])[0][-1]}
    loss = Loss("none", why="clm or mlm if the gradients are of such a loss")
    return Facts("vectors", pattern, steps, loss, arrays=arrays, config=config, notes=notes)


def _pattern_in(place: str) -> str:
    pattern = pattern_of(entry.name for entry in sorted(Path(place).iterdir()) if is_dump(entry))
    if pattern is None:
        raise ConfigError(f"new: {place} holds no dumps with their step in the name, such as step_500.npz")
    return f"{place.rstrip('/')}/{pattern}"


def _recognised(dump: Dump) -> dict[str, str]:
    """Arrays by what they are; activations are also the only array of numbers with two axes or more."""
    found = {}
    for role, known in ROLES.items():
        names = [name for name in dump.names() if re.fullmatch(known, name, re.IGNORECASE)]
        if len(names) == 1:
            found[role] = names[0]
    rows = [name for name in dump.names() if len(dump.about(name)[0]) > 1 and name not in found.values()]
    if "activations" not in found and len(rows) == 1:
        found["activations"] = rows[0]
    return found
