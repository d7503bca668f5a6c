"""The study: the config validated once, into frozen blocks; which checkpoints exist, known before the DAG.

Imported by the Snakefile on every cluster job, so nothing heavier than pydantic and yaml comes in here.
"""

import re
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import PrivateAttr, ValidationError, field_validator, model_validator

from isotrace.checkpoints.classes import PERCEIVED
from isotrace.corpus.check import check_corpora
from isotrace.errors import ConfigError
from isotrace.settings import analysis, inputs
from isotrace.settings.base import Block, Slug, key
from isotrace.settings.card import Card, check_scores
from isotrace.settings.corpora import Corpus, Mixture
from isotrace.settings.limits import Limits
from isotrace.settings.runs import expanded
from isotrace.settings.sources import Vectors
from isotrace.settings.storage import Storage, check_storage
from isotrace.settings.subspaces import Subspaces
from isotrace.settings.toy import Toy
from isotrace.settings.untrained import Untrained
from isotrace.sources.find import find_series
from isotrace.sources.series import RESULTS, Series
from isotrace.study_checks import check_model
from isotrace.yamlfile import read_mapping


class Study(Block):
    """A whole config file."""

    study: Slug = key(..., "name of the study, a column of the tables of measures")
    seed: int = key(0, "the one seed everything random derives from", ge=0)
    locked: bool = key(
        False, "stop where a checkpoint's tensors are not those of config/locks/MODEL.lock.json (`isotrace lock`)"
    )
    recapture: bool = key(
        False,
        "capture rows again that were cleaned; given for one run, with --config recapture=true, and part of nothing",
        exclude=True,
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
    card: Card = key(Card(), Card.__doc__ or "")
    scores: dict[Slug, str] = key({}, "your own scores, for the card: {MODEL: file.csv}, columns `step` and metrics")
    untrained: Untrained = key(Untrained(), Untrained.__doc__ or "")
    toy: Toy = key(Toy(), Toy.__doc__ or "")
    figures: analysis.Figures = key(analysis.Figures(), analysis.Figures.__doc__ or "")
    execution: analysis.Execution = key(analysis.Execution(), analysis.Execution.__doc__ or "")
    storage: Storage = key(Storage(), Storage.__doc__ or "")
    limits: Limits = key(Limits(), Limits.__doc__ or "")
    _groups: dict[str, str] = PrivateAttr(default_factory=dict)

    @field_validator("recapture", mode="before")
    @classmethod
    def _from_a_command_line(cls, value: Any) -> Any:
        """Snakemake hands over ``--config recapture=true`` as text, and only ``True`` as a boolean."""
        return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value

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
        """The buckets of a model: ``all`` where its tokens have neither ids nor an energy, else those of the study."""
        source = self.models[model].source
        if self.models[model].task in ("image", "audio"):
            return self.bucket_names if self.buckets.kind == "energy" else ["all"]
        return ["all"] if isinstance(source, Vectors) and source.arrays.token_id is None else self.bucket_names

    @property
    def dumped(self) -> list[str]:
        """Models whose vectors were dumped elsewhere: they read no text, and nothing loads them."""
        return [name for name, model in self.models.items() if isinstance(model.source, Vectors)]

    @property
    def loaded(self) -> list[str]:
        """The other models: checkpoints that are loaded."""
        return [name for name in self.models if name not in self.dumped]

    @property
    def perceived(self) -> list[str]:
        """Models that are loaded for what has no loss of text: images, audio, characters without a head."""
        return [name for name in self.loaded if self.models[name].task in PERCEIVED]

    @property
    def reading(self) -> list[str]:
        """Models that are loaded to read text, as tokens of any kind."""
        return [name for name in self.loaded if name not in self.perceived]

    @property
    def redrawn(self) -> list[str]:
        """Models of whose architecture untrained ones are measured beside their checkpoints."""
        drawn = [m for m in self.reading if self.models[m].source.kind != "init"]
        known = [m for m in drawn if getattr(self.models[m].source, "remote_code", None) is None]
        return known if self.untrained.seeds else []

    @property
    def results(self) -> Path:
        """The results folder."""
        return Path(self.pathvars.get("results", "results"))

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
    check_storage(study.storage)
    check_scores(study.scores, study.models)
    for name, model in study.models.items():
        check_model(name, model, study)
    return study


def read(path: str | Path) -> Study:
    """Read and validate a YAML config file."""
    return load(read_mapping(path))


def _one_line(error: ValidationError) -> str:
    first = error.errors()[0]
    where = " ".join(".".join(_path(first["loc"])).split())
    given = re.sub(r"//[^/@]*@", "//…@", repr(first.get("input")))  # a password in an address is not repeated
    value = "" if isinstance(first.get("input"), dict) else f" (got {given})"
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
