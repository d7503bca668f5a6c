# The validated study, the params of every rule, and the few functions that turn wildcards into paths.
import re
import sys
from pathlib import Path

from isotrace.checkpoints.locked import committed_lock
from isotrace.corpus.files import source_files
from isotrace.errors import ConfigError
from isotrace.figure_options import style_files
from isotrace.figure_tables import FIGURE_TABLES
from isotrace.params import CARD_TABLES, Params
from isotrace.planning.resources import Requests
from isotrace.recapture import refuse, rows_written
from isotrace.settings.media import MEDIA
from isotrace.shipped import kept
from isotrace.sources.series import tokenizer_file
from isotrace.sources.vectors import dump_files
from isotrace.study import load
from isotrace.yamlfile import check_repeated

try:
    # Snakemake has read these files already, keeping the last of a repeated key without a word.
    check_repeated(workflow.overwrite_configfiles or [ROOT / "config" / "demo.yaml"])
    study = load(config)
    CLAIMS = study.dynamics.claims
    if not Path(CLAIMS).is_file() and (ROOT / CLAIMS).is_file():
        CLAIMS = kept(ROOT / CLAIMS, ROOT)
    if not Path(CLAIMS).is_file():
        raise ConfigError(f"dynamics.claims: no file {study.dynamics.claims}; name a file of declared claims")
except ConfigError as error:
    sys.exit(f"isotrace: error: {error}")

P = Params(study)
R = Requests(study)
STYLE = [kept(Path(file).absolute(), ROOT) for file in style_files(study.figures.venue)]
METHODS = study.bases.methods + study.bases.controls
LOCKS = [f"<results>/checkpoints/{model}.lock.json" for model in study.models]
ANALYSES = ["energy", "isotropy", "geometry"]
CHECKS = ["controls", "rank_curve"]
READ_ROWS = ["semi_nmf"]
WHOLE_SERIES = ["subspaces", "components"]
TESTED = ANALYSES + ["frequency", "attention", "attention_intervals", "attention_mass"]
REDRAWN = ["untrained"] if study.redrawn else []
STAGES = TESTED + CHECKS + WHOLE_SERIES + REDRAWN


wildcard_constraints:
    corpus="[A-Za-z0-9.-]+",
    model="[A-Za-z0-9.-]+",
    checkpoint=r"step\d+(-[A-Za-z0-9.-]+)?",
    bucket=r"b\d+|all",
    draw=r"init(-\d+)?",


def memory(rule, model=""):
    """MB that a job asks a scheduler for; the model is that of its wildcards unless named."""
    return lambda w, attempt: R.memory(rule, model or w.get("model", ""), attempt)


def runtime(rule, model=""):
    """Minutes that a job asks a scheduler for."""
    return lambda w, attempt: R.runtime(rule, model or w.get("model", ""), attempt)


def per_bucket(stage):
    """One file a bucket: an output each, or all of them from one job when buckets are batched."""
    pattern = f"<results>/{stage}/{{model}}/{{checkpoint}}/{{bucket}}.parquet"
    if not study.execution.batch_buckets:
        return pattern
    return [pattern.replace("{bucket}", bucket) for bucket in study.bucket_names]


def per_bucket_side(root, stage, suffix):
    """A log or benchmark file of a job of ``per_bucket``."""
    name = "{checkpoint}" if study.execution.batch_buckets else "{checkpoint}.{bucket}"
    return f"<{root}>/{stage}/{{model}}/{name}.{suffix}"


def bases_of(methods):
    return [f"<results>/bases/{{model}}/{method}.nc" for method in methods]


def drawn_from(figure):
    """The tables that a figure reads."""
    return [stage for stage in FIGURE_TABLES[figure] if stage != "untrained" or REDRAWN]


def audits_of(model):
    return [f"<results>/checkpoints/{model}/{c}.json" for c in study.series[model].ids]


def results_of(stage):
    """Every file of a stage, the DAG's fan-out: one a model, a checkpoint or a bucket of it."""
    if stage == "untrained":
        return [f"<results>/untrained/{model}.parquet" for model in study.redrawn]
    if stage in WHOLE_SERIES:
        return [f"<results>/{stage}/{model}.parquet" for model in study.models]
    many = [(model, c) for model, series in study.series.items() for c in series.ids]
    if stage not in ANALYSES + CHECKS:
        return [f"<results>/{stage}/{model}/{c}.parquet" for model, c in many]
    return [f"<results>/{stage}/{model}/{c}/{b}.parquet" for model, c in many for b in study.buckets_of(model)]


def weights_of(model, checkpoint):
    """What an audit waits for: the rule that makes a checkpoint, or its own files (the folder, if it has none)."""
    found = study.series[model].at(checkpoint)
    if found.made_by:
        return found.made_by
    patterns = ("config.json", "*.safetensors", "pytorch_model*.bin")
    files = [path for pattern in patterns for path in sorted(Path(found.path).glob(pattern))]
    elsewhere = [f"{found.config}/config.json"] if found.config else []
    return [*map(str, files), *elsewhere] or found.path


def dump_of(model, checkpoint):
    """The files of a dump of vectors that its audit reads."""
    return dump_files(study.series[model].at(checkpoint).path, dict(study.models[model].source.arrays))


def media_files(model):
    """The images or recordings that a model reads; none where they are synthesised, or where it reads text."""
    corpus = study.corpora[study.corpus_of(model)]
    paths = getattr(corpus, "paths", []) if study.models[model].task in MEDIA else []
    return [str(file.path) for file in source_files(paths)] if paths else []


def documents_of(model):
    """The text that a model reads as characters; none of any other."""
    reads = study.models[model].task == "characters"
    return f"<results>/corpus/{study.corpus_of(model)}/documents.parquet" if reads else []


def drawn_like(model):
    """The config.json whose architecture is initialised; none where the config describes it."""
    source = study.models[model].source
    described = source.kind == "init" and source.architecture is not None
    return [] if described else study.series[model].shape


def tokenizer_beside(model):
    """The tokenizer named for a GGUF file; none where the file's own is read."""
    folder = study.models[model].source.tokenizer
    return tokenizer_file(folder) if folder else []


def keeps_weights(model):
    """Whether fetched weights stay; those of other sources are never removed."""
    return getattr(study.models[model].source, "clean", "never") == "never"


def any_of(names):
    """A wildcard that is one of these names; of none, it matches nothing."""
    return "|".join(re.escape(name) for name in names) or "(?!)"


def fetched(wildcards):
    """The downloaded weights that a capture reads, so that those removed since are fetched again when it runs."""
    series = study.series[wildcards.model]
    return series.at(wildcards.checkpoint).made_by if wildcards.checkpoint in series.downloads else []


def every_store(kind, model, ids=None):
    return [f"<results>/{kind}/{model}/{c}.json" for c in ids or study.series[model].ids]


def early_stores(kind):
    return lambda w: every_store(kind, w.model, study.series[w.model].early(study.bases.early_fraction))


def previous_cache(wildcards):
    """The cache of the checkpoint before, for displacement; none for the first."""
    ids = study.series[wildcards.model].ids
    i = ids.index(wildcards.checkpoint)
    wanted = "displacement_in_tangent" in study.geometry.metrics and i > 0
    return [f"<results>/cache/{wildcards.model}/{ids[i - 1]}.json"] if wanted else []
