"""A series of dumped vectors on this machine, found by a pattern; what is in them is for their audits to say."""

from collections.abc import Callable
from pathlib import Path

from isotrace.checkpoints.local import discover, left_out
from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Vectors
from isotrace.sources.local import required_tokenizer
from isotrace.sources.series import Found, Series

FILES = (".npz", ".safetensors")
"""Endings of dumps that are one file; all others are folders."""


def find(name: str, model: Model, source: Vectors) -> Series:
    """Dumps of the pattern by step; ConfigError, naming the key, for none, and for missing tokenizer or counts."""
    where, holds = f"models.{name}.source", holds_dump(source.path)
    dumps = discover(source.path, holds=holds)
    if not dumps:
        raise ConfigError(f"{where}.path: no {_kind(source.path)} matches {source.path!r}")
    beside = tuple({"name": one.name, "reason": one.reason} for one in left_out(source.path, holds=holds))
    if beside and source.on_broken == "error":
        raise ConfigError(
            f"{where}.on_broken: error, and beside the dumps lie {', '.join(one['name'] for one in beside)}; "
            f"take them away, or skip them"
        )
    if source.counts is not None and not (source.counts.endswith(".npy") and Path(source.counts).is_file()):
        raise ConfigError(f"{where}.counts: no .npy file {source.counts}")
    tokenizer = required_tokenizer(where, source.tokenizer) if source.tokenizer else ""
    per_step = model.tokens_per_step
    found = tuple(Found(d.id, d.step, d.path, tokens=None if per_step is None else per_step * d.step) for d in dumps)
    return Series(name, "vectors", found, model.total_steps or dumps[-1].step, tokenizer, left_out=beside)


def holds_dump(path: str) -> Callable[[Path], bool]:
    """What tells whether there is a dump where a path of this ending leads."""
    return Path.is_file if path.endswith(FILES) else Path.is_dir


def dump_files(path: str, arrays: dict[str, str | None]) -> list[str]:
    """The files of a dump that jobs wait for: of a folder of .npy files those named; of any other the whole."""
    if path.endswith((*FILES, ".zarr")):
        return [path]
    named = [f"{path}/{name}.npy" for name in arrays.values() if name]
    return [file for file in named if Path(file).is_file()] or [path]


def _kind(path: str) -> str:
    return "file" if path.endswith(FILES) else "folder"
