"""A series on the hub, as its series file lists it: parsing and every job but the downloads need no network."""

from typing import Any

from isotrace.errors import ConfigError
from isotrace.hub.choose import chosen
from isotrace.hub.series_file import Entry, read_series
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Hub
from isotrace.sources.series import RESULTS, Found, Series


def find(name: str, model: Model, source: Hub) -> Series:
    """The checkpoints that the config takes, in folders that rule ``prefetch`` writes; ConfigError names the key."""
    path, known = read_series(name, source)
    listed = known.identified()
    try:
        taken = [listed[i] for i in chosen([entry.step for _, entry in listed], source.revisions)]
    except ConfigError as error:
        raise ConfigError(f"models.{name}.source.revisions.{error}") from None
    weights = f"{RESULTS}/weights/{name}"
    per_step = model.tokens_per_step or known.tokens_per_step
    found = tuple(_found(identifier, entry, f"{weights}/{identifier}", per_step) for identifier, entry in taken)
    downloads = {identifier: _download(entry) for identifier, entry in taken}
    if source.remote_code is not None and known.code is not None:
        downloads["code"] = known.code.model_dump()
    return Series(
        name,
        "hub",
        found,
        model.total_steps or known.total_steps,
        "" if model.task == "characters" else f"{weights}/tokenizer/prefetch.json",
        shape=f"{weights}/tokenizer/config.json",
        downloads=downloads | {"tokenizer": known.tokenizer.model_dump(), "config": _download(taken[0][1])},
        architecture=known.config,
        listed_in=str(path),
    )


def _found(identifier: str, entry: Entry, folder: str, per_step: int | None) -> Found:
    tokens = entry.tokens_seen
    if tokens is None and per_step is not None:
        tokens = per_step * entry.step
    origin = entry.model_dump(include={"repo", "revision", "subfolder", "commit"})
    return Found(identifier, entry.step, folder, made_by=folder, tokens=tokens, origin=origin)


def _download(entry: Entry) -> dict[str, Any]:
    return entry.model_dump(include={"repo", "revision", "subfolder", "commit", "files"})
