"""The study: the config validated once, into frozen blocks; which checkpoints exist, known before the DAG.

Imported by the Snakefile on every cluster job, so nothing heavier than pydantic and yaml comes in here.
"""

import json
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr, ValidationError, model_validator

from isotrace.checkpoints.locked import committed_lock
from isotrace.corpus.check import check_corpora
from isotrace.corpus.shape import CONTEXT
from isotrace.errors import ConfigError
from isotrace.settings import analysis, inputs
from isotrace.settings.base import Block, Slug, key
from isotrace.settings.corpora import Corpus, Mixture
from isotrace.settings.limits import Limits
from isotrace.settings.runs import expanded
from isotrace.settings.sources import Init, Training, Vectors
from isotrace.settings.subspaces import Subspaces
from isotrace.settings.toy import Toy
from isotrace.sources.find import find_series
from isotrace.sources.series import RESULTS, Series
from isotrace.yamlfile import read_mapping


class Study(Block):
    """A whole config file."""

    study: Slug = key(..., "name of the study, a column of the tables of measures")
    seed: int = key(0, "the one seed everything random derives from", ge=0)
    locked: bool = key(
        False, "stop where a checkpoint's tensors are not those of config/locks/MODEL.lock.json (`isotrace lock`)"
    )
    pathvars: dict[Literal["results", "logs", "benchmarks"], str] = key(
        {}, "folders: results, logs, benchmarks (see Snakemake's pathvars)"
    )
    corpora: dict[Slug, Corpus] = key({}, "named corpora; none where every model is dumped vectors")
    models: dict[Slug, inputs.Model] = key(..., "named series of checkpoints", min_length=1)
    tokens: inputs.Tokens = key(inputs.Tokens(), inputs.Tokens.__doc__ or "")
    buckets: inputs.Buckets = key(inputs.Buckets(), inputs.Buckets.__doc__ or "")
    sample: inputs.Sample = key(inputs.Sample(), inputs.Sample.__doc__ or "")
    masking: inputs.Masking = key(inputs.Masking(), inputs.Masking.__doc__ or "")
    capture: analysis.Capture = key(analysis.Capture(), analysis.Capture.__doc__ or "")
    store: analysis.Store = key(analysis.Store(), analysis.Store.__doc__ or "")
    bases: analysis.Bases = key(analysis.Bases(), analysis.Bases.__doc__ or "")
    subspaces: Subspaces = key(Subspaces(), Subspaces.__doc__ or "")
    energy: analysis.Energy = key(analysis.Energy(), analysis.Energy.__doc__ or "")
    controls: analysis.Controls = key(analysis.Controls(), analysis.Controls.__doc__ or "")
    isotropy: analysis.Isotropy = key(analysis.Isotropy(), analysis.Isotropy.__doc__ or "")
    geometry: analysis.Geometry = key(analysis.Geometry(), analysis.Geometry.__doc__ or "")
    frequency: analysis.Frequency = key(analysis.Frequency(), analysis.Frequency.__doc__ or "")
    dynamics: analysis.Dynamics = key(analysis.Dynamics(), analysis.Dynamics.__doc__ or "")
    toy: Toy = key(Toy(), Toy.__doc__ or "")
    figures: analysis.Figures = key(analysis.Figures(), analysis.Figures.__doc__ or "")
    execution: analysis.Execution = key(analysis.Execution(), analysis.Execution.__doc__ or "")
    limits: Limits = key(Limits(), Limits.__doc__ or "")
    _groups: dict[str, str] = PrivateAttr(default_factory=dict)

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
    def series(self) -> dict[str, Series]:
        """The checkpoints of every model, by name."""
        return {name: self._shared(find_series(name, model)) for name, model in self.models.items()}

    def _shared(self, series: Series) -> Series:
        """The series; runs of a group that is trained here have one tokenizer."""
        group = self.groups.get(series.model)
        if group is None or series.provider != "train":
            return series
        return replace(series, tokenizer=f"{RESULTS}/weights/{group}/tokenizer/tokenizer.json")

    @property
    def groups(self) -> dict[str, str]:
        """The group of each run that ``models.NAME.seeds`` made: {model: NAME}."""
        return self._groups

    def run_of(self, name: str) -> str:
        """The model of that name, or the first run of the group of that name."""
        return next((run for run, group in self.groups.items() if group == name), name)

    @property
    def bucket_names(self) -> list[str]:
        """b0 (most frequent) to b{n-1}."""
        n = self.buckets.number if self.buckets.edges is None else len(self.buckets.edges) + 1
        return [f"b{i}" for i in range(n)]

    def buckets_of(self, model: str) -> list[str]:
        """The buckets of a model: ``all`` where its dumps hold no token ids, else those of the study."""
        source = self.models[model].source
        return ["all"] if isinstance(source, Vectors) and source.arrays.token_id is None else self.bucket_names

    @property
    def dumped(self) -> list[str]:
        """Models whose vectors were dumped elsewhere: they read no text, and nothing loads them."""
        return [name for name, model in self.models.items() if isinstance(model.source, Vectors)]

    @property
    def loaded(self) -> list[str]:
        """The other models: checkpoints that are loaded to read text."""
        return [name for name in self.models if name not in self.dumped]

    def seed_of(self, model: str) -> int:
        """The training seed of a model, the study's unless it names its own."""
        seed = self.models[model].seed
        return self.seed if seed is None else seed

    def corpus_of(self, model: str) -> str:
        """The corpus a model reads."""
        return self.models[model].corpus or next(iter(self.corpora))

    def parts_of(self, corpus: str) -> list[str]:
        """The corpora that a mixture is made of; none of any other corpus."""
        found = self.corpora[corpus]
        return sorted(found.parts) if isinstance(found, Mixture) else []


def validated(raw: dict[str, Any]) -> Study:
    """The config by itself, whatever is on disk; every mistake is a `ConfigError` of one line with the key's path."""
    try:
        study = Study.model_validate(raw)
    except ValidationError as error:
        raise ConfigError(_one_line(error)) from None
    models, groups = expanded(study.models)
    study = study.model_copy(update={"models": models})
    study._groups = groups
    return study


def load(raw: dict[str, Any]) -> Study:
    """Validate a config, and what it says of files and series; every mistake is a `ConfigError` of one line."""
    study = validated(raw)
    check_corpora(study.corpora)
    for name, model in study.models.items():
        _check_model(name, model, study)
    return study


def read(path: str | Path) -> Study:
    """Read and validate a YAML config file."""
    return load(read_mapping(path))


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    where = " ".join(".".join(_path(first["loc"])).split())
    value = "" if isinstance(first.get("input"), dict) else f" (got {first.get('input')!r})"
    what = first["msg"].removeprefix("Value error, ").replace("\n", " ")
    if first["type"] == "extra_forbidden":
        what, value = "unknown key; config/README.md lists the allowed ones", ""
    more = f"; {error.error_count() - 1} more" if error.error_count() > 1 else ""
    return f"{where}: {what}{value}{more}" if where else f"{what}{more}"


def _path(location: tuple[int | str, ...]) -> list[str]:
    """The key's path as the user wrote it: the kind of a source or corpus is no part of it."""
    parts = [str(part) for part in location]
    kind = 2 if parts[:1] == ["corpora"] else 3 if parts[2:3] == ["source"] else None
    return [part for i, part in enumerate(parts) if i != kind and part != "[key]"]


def _check_model(name: str, model: inputs.Model, study: Study) -> None:
    """What needs more than one key: corpus names, ranks, context and early checkpoints."""
    where = f"models.{name}"
    if isinstance(model.source, Vectors):
        _check_dumped(where, model, study)
    else:
        _check_read(where, name, model, study)
    series = study.series[name]
    if study.locked:
        committed_lock(name)
    if isinstance(model.source, Training | Init) and model.source.architecture is not None:
        _check_architecture(f"{where}.source.architecture", model.source.architecture, study)
    elif series.listed_in:
        _check_architecture(series.listed_in, series.architecture, study)
    elif series.shape:
        _check_architecture(series.shape, _architecture(Path(series.shape)), study)
    early = series.early(study.bases.early_fraction)
    if len(early) < 2:
        raise ConfigError(
            f"bases.early_fraction: {study.bases.early_fraction} leaves {len(early)} early checkpoint(s) of {name} "
            f"(steps {[f.step for f in series.found]}, total {series.total_steps}); two are needed: raise it or "
            f"add early checkpoints"
        )


def _check_dumped(where: str, model: inputs.Model, study: Study) -> None:
    """Keys of what is loaded or read mean nothing for vectors; buckets need the ids that they are made of."""
    assert isinstance(model.source, Vectors)
    arrays = model.source.arrays
    if study.buckets.by == "target" and arrays.token_id is not None and arrays.target_id is None:
        raise ConfigError(f"{where}.source.arrays.target_id: name the array of predicted ids, for buckets.by: target")
    for name in ("corpus", "modules"):
        if getattr(model, name) is not None:
            raise ConfigError(f"{where}.{name}: of dumped vectors nothing is loaded and no text is read; leave it out")


def _check_read(where: str, name: str, model: inputs.Model, study: Study) -> None:
    """The corpus and the loss of a model that is loaded."""
    if model.objective == "none":
        raise ConfigError(f"{where}.objective: none is for dumped vectors; what is loaded here has a loss, clm or mlm")
    if not study.corpora:
        raise ConfigError(f"corpora: name a corpus, which {where} reads")
    if model.corpus is None and len(study.corpora) > 1:
        raise ConfigError(f"{where}.corpus: name one of {sorted(study.corpora)}")
    if study.corpus_of(name) not in study.corpora:
        raise ConfigError(f"{where}.corpus: {model.corpus!r} is not among corpora {sorted(study.corpora)}")


def _architecture(file: Path) -> dict[str, Any]:
    """The config of a checkpoint, as far as it can be read; what is broken there is the audit's to say."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
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
