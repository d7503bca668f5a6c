"""A series of checkpoints as a config finds it, before any job: ids, steps, where each lies, what makes it.

Nothing heavier than pydantic is imported here or in the modules of single kinds: every cluster job parses again.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrace.errors import ConfigError

RESULTS = "<results>"
"""Stands for the study's results folder in paths that rules make (see Snakemake's pathvars)."""


@dataclass(frozen=True)
class Found:
    """One checkpoint.

    id: ``step{N}``, with a label where several share a step; path: its folder or file, below ``<results>`` where a
    rule makes it; made_by: that rule's output that an audit waits for, empty for what is there already; tokens:
    seen in training, None where unknown; origin: repo, revision, subfolder, commit of a stored one; config: the folder
    of its config.json where its own folder has none.
    """

    id: str
    step: int
    path: str
    made_by: str = ""
    tokens: int | None = None
    origin: dict[str, str | None] = field(default_factory=dict)
    config: str | None = None


@dataclass(frozen=True)
class Series:
    """The checkpoints of a model in order of step.

    tokenizer: the file by which its tokenizer is known; shape: the config.json that says how long its context and
    how large its vocabulary is, empty for a model that the config describes; architecture: its content where a series
    file holds it (``listed_in``); downloads: what rule ``prefetch`` fetches, by checkpoint, and by ``tokenizer``,
    ``config`` and, where the config pins it, ``code``; left_out: {name, reason} of what lies beside the
    checkpoints and is none.
    """

    model: str
    provider: str
    found: tuple[Found, ...]
    total_steps: int
    tokenizer: str
    shape: str = ""
    downloads: dict[str, dict[str, Any]] = field(default_factory=dict)
    architecture: dict[str, Any] = field(default_factory=dict)
    listed_in: str = ""
    left_out: tuple[dict[str, str], ...] = ()

    @property
    def ids(self) -> list[str]:
        """Ids in order."""
        return [f.id for f in self.found]

    @property
    def drawn(self) -> list[str]:
        """Ids of untrained checkpoints that the study added itself."""
        return [f.id for f in self.found if f.made_by == f"{RESULTS}/weights/{self.model}/init.json"]

    def at(self, checkpoint: str) -> Found:
        """One checkpoint by its id."""
        return next(f for f in self.found if f.id == checkpoint)

    def early(self, fraction: float) -> list[str]:
        """Ids with progress = step / total_steps up to ``fraction``."""
        return [f.id for f in self.found if f.step / self.total_steps <= fraction]


def required_config(where: str, folder: str) -> str:
    """The config.json of a folder; ConfigError at ``where`` if there is none."""
    file = Path(folder) / "config.json"
    if not file.is_file():
        raise ConfigError(f"{where}: {folder} holds no config.json")
    return f"{folder}/config.json"


def processor_file(where: str, folder: str) -> str:
    """The file of a folder that says how images or audio are prepared; ConfigError at ``where`` if there is none."""
    file = f"{folder}/preprocessor_config.json"
    if not Path(file).is_file():
        raise ConfigError(
            f"{where}.tokenizer: {folder} holds no preprocessor_config.json; copy the model's there, or name a folder "
            f"that has one"
        )
    return file


def tokenizer_file(folder: str) -> str | None:
    """The file by which a folder shows that it has a tokenizer, None where it has none."""
    names = ("tokenizer.json", "tokenizer_config.json")
    return next((f"{folder}/{name}" for name in names if (Path(folder) / name).is_file()), None)
