"""Jobs by rule, counted from the study: what ``snakemake -n`` would plan where nothing is done yet."""

from collections.abc import Iterator
from dataclasses import dataclass

from isotrace.sources.series import RESULTS, Series
from isotrace.study import Study

PER_BUCKET = ("energy", "controls", "isotropy", "geometry")
_ATTENTION = ("attention", "attention_intervals", "attention_mass")
_TABLES = ("rank_curve", "frequency", *_ATTENTION, "subspaces", "components", "audit")
"""Tables besides those of ``PER_BUCKET``."""
MAKERS = ("train", "initialise", "dequantise", "prefetch")
_BYTES = "weights/{}/tokenizer/tokenizer_config.json"
PER_CHECKPOINT = ("frequency", "attention")


@dataclass(frozen=True)
class Jobs:
    """n jobs of a rule, each over ``parts`` (checkpoints of an audit, buckets of an analysis); model "" for none."""

    rule: str
    model: str
    n: int
    parts: int = 1


def jobs(study: Study) -> list[Jobs]:
    """Every job of a study, rule by rule, in the order of the data."""
    corpora = len(_corpora(study))
    found = [Jobs("corpus", "", corpora)] if corpora else []
    for model in study.models:
        found += [one for one in _of_model(study, model) if one.n]
    return [*found, *(one for one in _of_study(study) if one.n)]


def _corpora(study: Study) -> set[str]:
    """Corpora that models read, and those that mixtures among them are made of."""
    found: set[str] = set()
    wanted = [study.corpus_of(name) for name in study.loaded if study.models[name].modality in ("text", "bytes")]
    while wanted:
        corpus = wanted.pop()
        found.add(corpus)
        wanted += study.parts_of(corpus)
    return found


def _of_model(study: Study, model: str) -> Iterator[Jobs]:
    checkpoints, buckets = len(study.series[model].found), len(study.buckets_of(model))
    if model in study.dumped:
        yield Jobs("audit", model, checkpoints)
        yield Jobs("vectors", model, checkpoints)
    else:
        yield from _of_loaded(study, model)
    yield Jobs("lock", model, 1)
    for rule in PER_CHECKPOINT:
        yield Jobs(rule, model, checkpoints)
    yield Jobs("bases", model, len(study.bases.methods) + len(study.bases.controls))
    yield Jobs("moving", model, len(study.bases.methods) if "moving" in study.bases.kinds else 0)
    yield Jobs("subspaces", model, 1)
    batched = study.execution.batch_buckets
    for rule in PER_BUCKET:
        yield Jobs(rule, model, checkpoints * (1 if batched else buckets), buckets if batched else 1)


def _of_loaded(study: Study, model: str) -> Iterator[Jobs]:
    """What makes the stores of a model that is loaded."""
    series = study.series[model]
    checkpoints = len(series.found)
    made = list(makers(series).values())
    reads = model in study.reading
    if trains_tokenizer(series) and model == study.run_of(study.groups.get(model, model)):
        yield Jobs("tokenizer", model, 1)
    yield Jobs("byte_tokenizer", model, int(series.tokenizer == f"{RESULTS}/{_BYTES.format(model)}"))
    for rule in MAKERS:
        yield Jobs(rule, model, made.count(rule))
    yield Jobs("tokens", model, int(reads))
    yield Jobs("sample", model, int(reads))
    together = study.execution.batch_audits
    yield Jobs("audit", model, 1 if together else checkpoints, checkpoints if together else 1)
    yield Jobs("capture" if reads else "perceive", model, checkpoints)
    yield Jobs("untrained", model, int(model in study.redrawn))


def _of_study(study: Study) -> Iterator[Jobs]:
    scattered = "frequency_geometry" in study.figures.names
    yield Jobs("table", "", len(PER_BUCKET) + len(_TABLES) + scattered + bool(study.redrawn))
    yield Jobs("toy", "", int("toy" in study.figures.names))
    yield Jobs("dynamics", "", 1)
    yield Jobs("claims", "", 1)
    yield Jobs("figure", "", len(study.figures.names))
    yield Jobs("report", "", 1)
    yield Jobs("card", "", 1)


def trains_tokenizer(series: Series) -> bool:
    """Whether the tokenizer of a series is trained on its corpus; one job serves all runs of a group."""
    return series.tokenizer.startswith(f"{RESULTS}/") and series.tokenizer.endswith("/tokenizer/tokenizer.json")


def makers(series: Series) -> dict[str, str]:
    """The rule that makes each file that the jobs of a series wait for, by file."""
    weights = f"{RESULTS}/weights/{series.model}"
    files = {found.made_by: _maker(found.made_by) for found in series.found if found.made_by}
    if series.tokenizer == f"{weights}/tokenizer/prefetch.json":
        files[series.tokenizer] = "prefetch"
    return files


def _maker(file: str) -> str:
    name = file.rpartition("/")[2]
    known = {"series.json": "train", "init": "initialise", "dequantised.json": "dequantise"}
    return known.get(name) or next((rule for start, rule in known.items() if name.startswith(start)), "prefetch")
