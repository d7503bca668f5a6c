"""The series file: every checkpoint of a hub series with its commit and file hashes, as `isotrace resolve` writes it.

Read while a workflow is parsed: nothing heavier than pydantic, and no network.
"""

from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from isotrace.checkpoints.labels import Label, checkpoint_ids, read_label
from isotrace.errors import ConfigError
from isotrace.settings.base import Block
from isotrace.settings.sources import Hub

SHIPPED = Path(__file__).parents[3]
"""Beside ``workflow``, where series files that come with a study lie."""


class File(Block):
    """Size in bytes, and the digest where the hub states one (large files)."""

    bytes: int
    sha256: str | None = None


class Entry(Block):
    """One checkpoint of a series; ``commit`` is null until it is resolved."""

    label: str
    step: int
    repo: str
    revision: str
    tokens_seen: int | None = None
    subfolder: str | None = None
    commit: str | None = None
    files: dict[str, File] = Field(default_factory=dict)


class Beside(Block):
    """Where the tokenizer of a series is, or its code."""

    repo: str
    revision: str
    subfolder: str | None = None
    commit: str | None = None
    files: dict[str, File] = Field(default_factory=dict)


class SeriesFile(Block):
    """A whole series. ``config`` is its config.json, by which shapes are checked before any download."""

    model: str
    repo: str
    total_steps: int
    tokens_per_step: int | None = None
    checkpoints: list[Entry]
    tokenizer: Beside
    code: Beside | None = None
    config: dict[str, Any] = Field(default_factory=dict)

    def identified(self) -> list[tuple[str, Entry]]:
        """Entries with their ids, by step; an id stays the same whichever checkpoints a config takes."""
        labels = [Label(entry.label, entry.step) for entry in self.checkpoints]
        pairs = zip(checkpoint_ids(labels), self.checkpoints, strict=True)
        return sorted(pairs, key=lambda pair: (pair[1].step, pair[0]))


def series_path(name: str, source: Hub) -> Path:
    """Where the series file of a model is to be written."""
    return Path(source.series.replace("{model}", name))


def read_series(name: str, source: Hub) -> tuple[Path, SeriesFile]:
    """The series file of a model, from the working directory or among those shipped; ConfigError names the command."""
    path = series_path(name, source)
    again = f"run: isotrace resolve {name} --configfile FILE"
    file = next((p for p in (path, SHIPPED / path) if p.is_file()), None)
    if file is None:
        raise ConfigError(f"models.{name}.source.series: no file {path}; where there is a network, {again}")
    try:
        series = SeriesFile.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ConfigError(f"{path}: {where}: {first['msg']}; {again}") from None
    if series.repo != source.repo:
        raise ConfigError(f"models.{name}.source.repo: {source.repo!r}, but {path} is of {series.repo!r}; {again}")
    foreign = [e.label for e in series.checkpoints if read_label(e.label, source.revisions.labels) is None]
    pinned = source.remote_code
    if pinned is not None and (series.code is None or series.code.commit != pinned):
        listed = f"lists that of {series.code.commit}" if series.code else "lists no code"
        raise ConfigError(f"models.{name}.source.remote_code: {pinned!r}, but {path} {listed}; {again}")
    if foreign or not series.checkpoints:
        wrong = f"lists {foreign[0]!r}, which is none of them" if foreign else "lists none"
        labels = source.revisions.labels
        raise ConfigError(f"models.{name}.source.revisions.labels: {labels!r}, but {path} {wrong}; {again}")
    return path, series
