"""One legal change of every key of the example study: found from the key's type, or declared where that is not enough.

Keys that choose a kind (`kind`, `source`) have none: another kind is another model or corpus.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, get_args

from isotrace.configdocs import Entry, entries
from isotrace.errors import ConfigError
from isotrace.reruns.example import COMMIT, NEOX, STEPS, TOTAL, example
from isotrace.settings.analysis import METRICS, FigureName

PLACES = {
    "corpora.NAME(mediawiki).": "corpora.dump.",
    "corpora.NAME(files).": "corpora.text.",
    "corpora.NAME(datasets).": "corpora.streamed.",
    "corpora.NAME(mixture).": "corpora.mixed.",
    "corpora.NAME(images).": "corpora.images.",
    "corpora.NAME(audio).": "corpora.recordings.",
    "corpora.NAME(tones).": "corpora.tones.",
    "models.NAME.source(train).": "models.trained.source.",
    "models.NAME.source(local).": "models.stored.source.",
    "models.NAME.source(init).": "models.drawn.source.",
    "models.NAME.source(gguf).": "models.quantised.source.",
    "models.NAME.source(hub).": "models.fetched.source.",
    "models.NAME.source(vectors).": "models.dumped.source.",
    "models.NAME.": "models.trained.",
}
"""Where a key with a name in it stands in the example; the first that fits counts."""
READERS = {
    "dump": "masked",
    "text": "trained",
    "streamed": "drawn",
    "mixed": "masked",
    "images": "pictures",
    "recordings": "sounds",
    "tones": "made",
}
"""A model that reads each corpus, by which a change of it is shown."""


class Together(dict[str, Any]):
    """Values of several keys of one block, which change together or not at all."""


_OTHER = "1" * 40
_SITES = {"embed": "gpt_neox.embed_in", "blocks": "gpt_neox.layers", "final_norm": "gpt_neox.final_layer_norm"}
_CORPORA: dict[str, Any] = {
    "corpora.NAME(mediawiki).paths": ["more.xml"],
    "corpora.NAME(mediawiki).language": "de",
    "corpora.NAME(files).paths": ["more.txt"],
    "corpora.NAME(files).text_key": "body",
    "corpora.NAME(files).language": "de",
    "corpora.NAME(datasets).name": "org/other",
    "corpora.NAME(datasets).revision": _OTHER,
    "corpora.NAME(datasets).config": "simple",
    "corpora.NAME(datasets).split": "test",
    "corpora.NAME(datasets).field": "body",
    "corpora.NAME(datasets).shuffle_seed": 1,
    "corpora.NAME(datasets).language": "de",
    "corpora.NAME(mixture).parts": {"text": 2.0, "dump": 1.0},
    "corpora.NAME(mixture).max_documents": 10,
    "corpora.NAME(images).paths": ["b.png"],
    "corpora.NAME(audio).paths": ["b.wav"],
}
_SOURCES: dict[str, Any] = {
    "models.NAME.source(train).architecture": NEOX | {"intermediate_size": 64},
    "models.NAME.source(train).steps": [0, 2, 5, 7, 10, 20],
    "models.NAME.source(train).isotropy_site": "block.0",
    "models.NAME.source(local).path": "moved/checkpoint-{step}",
    "models.NAME.source(local).tokenizer": "words",
    "models.NAME.source(local).config": "shape",
    "models.NAME.source(init).architecture": NEOX | {"intermediate_size": 64},
    "models.NAME.source(init).folder": Together(folder="shape", architecture=None),
    "models.NAME.source(init).seeds": [0, 1, 2],
    "models.NAME.source(init).tokenizer": "words",
    "models.NAME.source(gguf).path": "other.gguf",
    "models.NAME.source(gguf).step": TOTAL - 1,
    "models.NAME.source(gguf).tokenizer": "words",
    "models.NAME.source(hub).repo": Together(repo="org/other", series="config/series/other.json"),
    "models.NAME.source(hub).revisions.labels": r"step(?P<step>\d+)",
    "models.NAME.source(hub).revisions.take.every": 2,
    "models.NAME.source(hub).revisions.take.log": 3,
    "models.NAME.source(hub).revisions.take.steps": [0, 2, 20],
    "models.NAME.source(hub).revisions.max": 5,
    "models.NAME.source(hub).subfolder": "weights",
    "models.NAME.source(hub).tokenizer": {"repo": "org/words"},
    "models.NAME.source(hub).series": "config/series/fetched.json",
    "models.NAME.source(hub).remote_code": COMMIT,
    "models.NAME.source(hub).with_init": Together({"with_init": True, "revisions.take.steps": list(STEPS[1:])}),
    "models.NAME.source(vectors).path": "else/{step}",
    "models.NAME.source(vectors).sites": ["block.0", "block.1"],
    "models.NAME.source(vectors).rows_independent": Together({"rows_independent": True, "arrays.sequence": None}),
    "models.NAME.source(vectors).tokenizer": "words",
    "models.NAME.source(vectors).counts": "counts.npy",
}
_MODELS: dict[str, Any] = {
    "models.NAME.objective": "mlm",
    "models.NAME.modality": "bytes",
    "models.NAME.corpus": "dump",
    "models.NAME.modules": _SITES,
    "models.NAME.total_steps": 2 * TOTAL,
    "models.NAME.tokens_per_step": 100,
    "models.NAME.seed": 1,
    "models.NAME.seeds": [0, 1],
}
_STUDY: dict[str, Any] = {
    "study": "other",
    "recapture": True,
    "pathvars": {"results": "elsewhere"},
    "tokens.sequence_length": 32,
    "tokens.max_sequences": 100,
    "buckets.kind": "rank",
    "buckets.edges": [0.5, 0.8],
    "masking.replace": [0.9, 0.05, 0.05],
    "capture.sites": ["embed", "block.1"],
    "bases.methods": ["pca", "svd", "semi_nmf"],
    "bases.controls": ["random", "variance_weighted"],
    "isotropy.ranks": [4],
    "dynamics.rank": 2,
    "dynamics.claims": "other.yaml",
    "scores": {"trained": "scores.csv"},
    "storage.cache": "s3://bucket/rows",
    "storage.weights": "shared",
    "untrained.seeds": [0, 1, 2],
    "toy.width": 32,
    "toy.heads": 2,
    "toy.input_cosines": [0.0, 0.5],
    "toy.qk_scales": [0.0, 1.0],
    "geometry.metrics": [*METRICS, "displacement_in_tangent"],
    "figures.names": list(get_args(FigureName)),
}
DECLARED = _CORPORA | _SOURCES | _MODELS | _STUDY
"""Values of keys whose type does not say another legal one."""
FIXED = ("models.NAME.source(gguf).with_init",)
"""Keys with one legal value."""
VARIANTS: dict[str, dict[str, Any]] = {
    "bases.ranks": {"ranks between": [2, 3, 4], "a new largest rank": [2, 4, 8]},
    "bases.early_fraction": {"the same early checkpoints": 0.32, "other early checkpoints": 0.36},
}
"""Keys whose effect depends on the value, with what tells the cases apart."""
MODEL_OF = {
    "models.NAME.modality": "drawn",
    "models.NAME.tokens_per_step": "stored",
    "models.NAME.seeds": "runs",
}
"""Models of the example on which a key is shown where `trained` would not do."""
BESIDE = {"models.NAME.corpus": ("masked",)}
"""Models that must be in the study too, for the corpora they read."""

WHOLE = ("seed", "pathvars", "tokens", "buckets", "sample", "masking", "capture", "store", "storage", "execution")
"""Blocks that rules of single kinds of model read; for all others two models show every rule below the stores."""
FEW = ("trained", "dumped")


@dataclass(frozen=True)
class Change:
    """A key, what tells this change from another of the same key, the edits, and the models of its study (all if none).

    ``edits`` are values by dotted path.
    """

    key: str
    case: str
    edits: dict[str, Any]
    models: tuple[str, ...] = ()


def changes() -> Iterator[Change]:
    """One change of every key, two where ``VARIANTS`` has them; ConfigError for a key without a legal other value."""
    base = example()
    for entry in entries():
        if entry.path.endswith((").kind", ").source")) or entry.path in FIXED:
            continue
        for case, value in VARIANTS.get(entry.path, {"": DECLARED.get(entry.path, ...)}).items():
            place, models = _place(entry.path)
            value = _other(entry, _at(base, place)) if value is ... else value
            yield Change(entry.path, case, _edits(place, value), models)


def _place(key: str) -> tuple[str, tuple[str, ...]]:
    """The path of a key in the example, and the models of its study."""
    for start, there in PLACES.items():
        if key.startswith(start):
            place = there + key.removeprefix(start)
            block, name = place.split(".")[:2]
            name = MODEL_OF.get(key, name) if block == "models" else name
            model = name if block == "models" else READERS[name]
            return ".".join([block, name, *place.split(".")[2:]]), (model, *BESIDE.get(key, ()))
    return key, () if key.split(".")[0] in WHOLE else FEW


def _edits(place: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Together):
        return {place: value}
    block = place.rpartition(".")[0]
    return {f"{block}.{name}": inner for name, inner in value.items()}


def _at(raw: Mapping[str, Any], place: str) -> Any:
    value: Any = raw
    for name in place.split("."):
        value = value[name]
    return value


def _other(entry: Entry, value: Any) -> Any:
    """Another value of the same kind."""
    choices = entry.choices
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return round(0.9 * value, 6) if value else 0.1
    if isinstance(value, str) and choices:
        return next(choice for choice in choices if choice != value)
    if isinstance(value, list) and choices:
        return value[:-1] if len(value) > 1 else [choice for choice in choices if choice not in value][:1]
    if value is None and entry.path.startswith(("limits.", "corpora.")):
        return 1 if entry.path.endswith(("files", "documents")) else 1.0
    if isinstance(value, str) and ".arrays." in entry.path:
        return "other"
    raise ConfigError(f"{entry.path}: declare another value of it in isotrace/reruns/changes.py")


def edited(raw: Mapping[str, Any], edits: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a config with values at dotted paths."""
    found = {name: dict(value) if isinstance(value, dict) else value for name, value in raw.items()}
    for path, value in edits.items():
        *parents, last = path.split(".")
        block = found
        for name in parents:
            block[name] = dict(block[name])
            block = block[name]
        block[last] = value
    return found
