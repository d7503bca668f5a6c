"""The study: the config validated once, into frozen blocks; which checkpoints exist, known before the DAG.

Imported by the Snakefile on every cluster job, so nothing heavier than pydantic and yaml comes in here.
"""

import json
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import ValidationError, model_validator

from isotrace.checkpoints.load import weight_files
from isotrace.checkpoints.local import Found, discover
from isotrace.corpus.shape import CONTEXT
from isotrace.errors import ConfigError
from isotrace.settings import analysis, inputs
from isotrace.settings.base import Block, Slug, key


class Study(Block):
    """A whole config file."""

    study: Slug = key(..., "name of the study, a column of the tables of measures")
    seed: int = key(0, "the one seed everything random derives from", ge=0)
    pathvars: dict[Literal["results", "logs", "benchmarks"], str] = key(
        {}, "folders: results, logs, benchmarks (see Snakemake's pathvars)"
    )
    corpora: dict[Slug, inputs.Corpus] = key(..., "named corpora", min_length=1)
    models: dict[Slug, inputs.Model] = key(..., "named series of checkpoints", min_length=1)
    tokens: inputs.Tokens = key(inputs.Tokens(), inputs.Tokens.__doc__ or "")
    buckets: inputs.Buckets = key(inputs.Buckets(), inputs.Buckets.__doc__ or "")
    sample: inputs.Sample = key(inputs.Sample(), inputs.Sample.__doc__ or "")
    masking: inputs.Masking = key(inputs.Masking(), inputs.Masking.__doc__ or "")
    capture: analysis.Capture = key(analysis.Capture(), analysis.Capture.__doc__ or "")
    store: analysis.Store = key(analysis.Store(), analysis.Store.__doc__ or "")
    bases: analysis.Bases = key(analysis.Bases(), analysis.Bases.__doc__ or "")
    energy: analysis.Energy = key(analysis.Energy(), analysis.Energy.__doc__ or "")
    isotropy: analysis.Isotropy = key(analysis.Isotropy(), analysis.Isotropy.__doc__ or "")
    geometry: analysis.Geometry = key(analysis.Geometry(), analysis.Geometry.__doc__ or "")
    frequency: analysis.Frequency = key(analysis.Frequency(), analysis.Frequency.__doc__ or "")
    dynamics: analysis.Dynamics = key(analysis.Dynamics(), analysis.Dynamics.__doc__ or "")
    figures: analysis.Figures = key(analysis.Figures(), analysis.Figures.__doc__ or "")
    execution: analysis.Execution = key(analysis.Execution(), analysis.Execution.__doc__ or "")

    @model_validator(mode="after")
    def _check_ranks(self) -> "Study":
        missing = sorted(set(self.isotropy.ranks) - set(self.bases.ranks))
        if missing:
            raise ValueError(f"isotropy.ranks: {missing} not among bases.ranks {self.bases.ranks}")
        if self.dynamics.rank not in self.bases.ranks or self.dynamics.rank not in self.isotropy.ranks:
            raise ValueError(f"dynamics.rank: {self.dynamics.rank} must be in bases.ranks and isotropy.ranks")
        for block in ("energy", "isotropy"):
            if self.dynamics.null_space not in getattr(self, block).null_spaces:
                raise ValueError(f"dynamics.null_space: {self.dynamics.null_space} must be in {block}.null_spaces")
        if self.dynamics.method not in self.bases.methods:
            raise ValueError(f"dynamics.method: {self.dynamics.method} must be in bases.methods {self.bases.methods}")
        return self

    @cached_property
    def series(self) -> dict[str, "Series"]:
        """The checkpoints of every model, by name."""
        return {name: _series(name, model, self) for name, model in self.models.items()}

    @property
    def bucket_names(self) -> list[str]:
        """b0 (most frequent) to b{n-1}."""
        n = self.buckets.number if self.buckets.edges is None else len(self.buckets.edges) + 1
        return [f"b{i}" for i in range(n)]

    def seed_of(self, model: str) -> int:
        """The training seed of a model, the study's unless it names its own."""
        seed = self.models[model].seed
        return self.seed if seed is None else seed

    def corpus_of(self, model: str) -> str:
        """The corpus a model reads."""
        return self.models[model].corpus or next(iter(self.corpora))


class Series(Block):
    """Which checkpoints of a model exist, in order of step."""

    model: str
    found: tuple[Found, ...]
    total_steps: int

    @property
    def ids(self) -> list[str]:
        return [f.id for f in self.found]

    def at(self, checkpoint: str) -> Found:
        return next(f for f in self.found if f.id == checkpoint)

    @property
    def reference(self) -> str:
        """The first folder with a config: its tokenizer and shape are the series', whatever is added later."""
        return next((f.path for f in self.found if (Path(f.path) / "config.json").is_file()), self.found[0].path)

    def early(self, fraction: float) -> list[str]:
        """Ids with progress = step / total_steps up to ``fraction``."""
        return [f.id for f in self.found if f.step / self.total_steps <= fraction]


def load(raw: dict[str, Any]) -> Study:
    """Validate a config; every mistake is a `ConfigError` of one line that names the key's path."""
    try:
        study = Study.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from None
    for name, model in study.models.items():
        _check_model(name, model, study)
    return study


def read(path: str | Path) -> Study:
    """Read and validate a YAML config file."""
    try:
        raw = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such config file in {Path.cwd()}") from None
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML ({' '.join(str(error).split())})") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a mapping of keys is expected, e.g. `study: mine`")
    return load(raw)


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(_path(first["loc"]))
    value = "" if isinstance(first.get("input"), dict) else f" (got {first.get('input')!r})"
    what = first["msg"].removeprefix("Value error, ").replace("\n", " ")
    if first["type"] == "extra_forbidden":
        what, value = "unknown key; config/README.md lists the allowed ones", ""
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{where}: {what}{value}{more}" if where else f"{what}{more}"


def _path(location: tuple[int | str, ...]) -> list[str]:
    """The key's path as the user wrote it: the kind of a source is no part of it."""
    parts = [str(part) for part in location]
    return [part for i, part in enumerate(parts) if i == 0 or parts[i - 1] != "source" or i != 3]


def _check_model(name: str, model: inputs.Model, study: Study) -> None:
    """What needs more than one key: corpus names, ranks, context and early checkpoints."""
    where = f"models.{name}"
    if model.corpus is None and len(study.corpora) > 1:
        raise ConfigError(f"{where}.corpus: name one of {sorted(study.corpora)}")
    if study.corpus_of(name) not in study.corpora:
        raise ConfigError(f"{where}.corpus: {model.corpus!r} is not among corpora {sorted(study.corpora)}")
    series = study.series[name]
    if isinstance(model.source, inputs.Training):
        _check_architecture(f"{where}.source.architecture", model.source.architecture, study)
    else:
        _check_architecture(f"{series.reference}/config.json", _architecture(Path(series.reference)), study)
        _check_tokenizer(where, model.source.tokenizer or series.reference)
        if not any(weight_files(Path(found.path)) for found in series.found):
            raise ConfigError(
                f"{where}.source.path: none of the {len(series.found)} folders that match {model.source.path!r} holds "
                f"weights (*.safetensors or pytorch_model*.bin)"
            )
    early = series.early(study.bases.early_fraction)
    if len(early) < 2:
        raise ConfigError(
            f"bases.early_fraction: {study.bases.early_fraction} leaves {len(early)} early checkpoint(s) of {name} "
            f"(steps {[f.step for f in series.found]}, total {series.total_steps}); two are needed: raise it or "
            f"add early checkpoints"
        )


def _check_tokenizer(where: str, folder: str) -> None:
    if not tokenizer_file(folder):
        raise ConfigError(
            f"{where}.source.tokenizer: {folder} holds no tokenizer.json or tokenizer_config.json; copy the tokenizer "
            f"there, or name a folder that has one"
        )


def tokenizer_file(folder: str) -> str | None:
    """The file by which a folder shows that it has a tokenizer, None where it has none."""
    names = ("tokenizer.json", "tokenizer_config.json")
    return next((f"{folder}/{name}" for name in names if (Path(folder) / name).is_file()), None)


def _architecture(folder: Path) -> dict[str, Any]:
    """The config of a checkpoint, as far as it can be read; what is broken there is the audit's to say."""
    try:
        found = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_architecture(where: str, architecture: dict[str, Any], study: Study) -> None:
    width = next((architecture[k] for k in ("hidden_size", "n_embd", "d_model") if k in architecture), None)
    if width is not None and 2 * max(study.bases.ranks) > width:
        raise ConfigError(f"bases.ranks: {max(study.bases.ranks)} is above half the width {width} of {where}")
    context = next((architecture[k] for k in CONTEXT if k in architecture), None)
    if context is not None and study.tokens.sequence_length > context:
        raise ConfigError(
            f"tokens.sequence_length: {study.tokens.sequence_length} is above the context {context} of {where}"
        )


def _series(name: str, model: inputs.Model, study: Study) -> Series:
    if isinstance(model.source, inputs.Training):
        folder = f"<results>/weights/{name}"
        found = tuple(Found(f"step{step}", step, f"{folder}/checkpoint-{step}") for step in model.source.steps)
    else:
        found = tuple(discover(model.source.path))
        if not found:
            raise ConfigError(f"models.{name}.source.path: no folder matches {model.source.path!r}")
        if not any((Path(f.path) / "config.json").is_file() for f in found):
            raise ConfigError(f"models.{name}.source.path: no folder of {model.source.path!r} has a config.json")
    last = max(f.step for f in found)
    total = model.total_steps or last
    if total < last or total < 1:
        raise ConfigError(f"models.{name}.total_steps: {total} is below the largest stored step {last}")
    return Series(model=name, found=found, total_steps=total)
