"""What one model brings along: its shape, passes, rows, stores and weights, from the config alone."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotrace.limits import Plan
from isotrace.planning.jobs import trains_tokenizer
from isotrace.planning.shapes import Shape, shape_of, stored_parameters
from isotrace.settings.sources import Hub, Init, Training
from isotrace.sources.series import RESULTS, Series
from isotrace.study import Study

_SPLITS = 2
_MANIFESTS = 3
"""One beside each store of a checkpoint."""
_TIMESTAMPS = 3
"""Snakemake's own file in each folder of them."""


@dataclass(frozen=True)
class Work:
    """One model as planned; shape None where its config is not on this machine yet.

    passes: sequences run through the model at a checkpoint; rows: positions kept, all buckets together, at most;
    store: what a checkpoint's stores hold; weights: bytes that rules write for the whole series.
    """

    model: str
    shape: Shape | None
    checkpoints: int
    passes: int
    length: int
    rows: int
    store: Plan | None
    weights: int

    @property
    def tokens(self) -> int:
        """Tokens run through the model at all checkpoints, once forward and backward."""
        return self.checkpoints * self.passes * self.length

    @property
    def cache_bytes(self) -> int:
        """Rows of all checkpoints, before compression, which gains little on them."""
        if self.store is None:
            return 0
        itemsize, scale = (2, 4) if self.store.dtype == "float16" else (4, 0)
        row = _SPLITS * (self.store.width * itemsize + scale)  # activations and gradients are two as splits are
        return self.checkpoints * sum(self.store.rows) * self.store.sites * row

    @property
    def moments_bytes(self) -> int:
        """Moments of all checkpoints: d^2 a bucket, split, quantity and site, and by group; then stacked matrices."""
        if self.store is None:
            return 0
        s, d = self.store, self.store.width
        one = s.quantities * s.sites * (4 * d * d + 8 * d)
        by_group = s.groups * s.quantities * s.sites * (4 * d * d + 16 * d)
        matrices = sum(4 * n * rows * columns for n, rows, columns in s.matrices)
        return self.checkpoints * len(s.rows) * (_SPLITS * one + by_group + matrices)

    @property
    def heads_bytes(self) -> int:
        """Attention sums of all checkpoints: d_h^2 a head, layer and bucket, and 2 d_h a group of sequences."""
        if self.shape is None or self.store is None:
            return 0
        s, buckets = self.shape, len(self.store.rows)
        by_group = min(_GROUPS, self.passes) * (2 * s.head + 4 * buckets + 5)  # sums, sharpness and mass, norms
        return self.checkpoints * 8 * buckets * s.layers * s.heads * (s.head * (s.head + 2) + by_group)

    @property
    def store_files(self) -> int:
        """Files of all stores, their manifests and Snakemake's timestamps among them."""
        return 0 if self.store is None else self.checkpoints * (self.store.files + _MANIFESTS + _TIMESTAMPS)

    @property
    def row_files(self) -> int:
        """Files of the rows of all checkpoints."""
        return 0 if self.store is None else self.checkpoints * self.store.row_files


def work_of(study: Study, model: str, results: Path) -> Work:
    """Plan one model; ``results`` is where a config that a rule has fetched may lie already."""
    series = study.series[model]
    shape = _shape(study, model, results)
    draws = study.masking.draws if study.models[model].objective == "mlm" else 1
    sequences = study.sample.sequences
    passes, length = draws * (sequences.fit + sequences.eval), study.tokens.sequence_length
    every = _every_eval(study) if study.capture.moments_tokens == "all" else 0
    wanted = study.sample.rows_per_bucket
    at_most = [draws * n * (length - 1) for n in (sequences.fit, sequences.eval)]  # of all buckets together
    buckets = len(study.buckets_of(model))
    kept = [min(buckets * n, most) for n, most in zip((wanted.fit, wanted.eval), at_most, strict=True)]
    return Work(
        model=model,
        shape=shape,
        checkpoints=len(series.found),
        passes=0 if model not in study.reading else max(passes, draws * (sequences.fit + every)),
        length=length,
        rows=sum(kept),
        store=None if shape is None else _store(study, shape, [sum(kept) // buckets] * buckets, every),
        weights=_weights(study, series, shape),
    )


def _shape(study: Study, model: str, results: Path) -> Shape | None:
    """Counted from the config; the entries of safetensors files count more where they lie here already."""
    series, source = study.series[model], study.models[model].source
    config: Mapping[str, Any] = getattr(source, "architecture", None) or series.architecture
    if isinstance(source, Training | Init) and trains_tokenizer(series):
        config = {**config, "vocab_size": source.vocabulary}
    if not config and series.shape:
        config = _read(_here(series.shape, results))
    shape = shape_of(config)
    folder = _here(series.found[-1].path, results)
    stored = stored_parameters(folder) if folder.is_dir() else None
    return Shape(**{**vars(shape), "parameters": stored, "known": True}) if shape and stored else shape


def _here(path: str, results: Path) -> Path:
    return Path(path.replace(RESULTS, str(results)))


def _read(file: Path) -> dict[str, Any]:
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}  # not made yet, or for the audit to name
    return found if isinstance(found, dict) else {}


def _every_eval(study: Study) -> int:
    """Evaluation sequences; how many a whole corpus makes is known once it is tokenised."""
    tokens = study.tokens
    return round(tokens.eval_fraction * tokens.max_sequences) if tokens.max_sequences else study.sample.sequences.eval


def _store(study: Study, shape: Shape, rows: list[int], every: int) -> Plan:
    """What one checkpoint's stores hold, as ``capture.stores.plan`` will find it in the loaded model."""
    capture, d = study.capture, shape.width
    blocks = shape.blocks(capture.sites)
    weights = capture.weight_gradients
    maps, reads = (0, 0) if weights == "none" else (shape.maps, shape.reads)
    stacked = (maps * blocks, shape.inner, d)
    return Plan(
        sites=shape.sites(capture.sites),
        width=d,
        rows=tuple(rows),
        dtype=study.store.dtype,
        quantities=2 + maps + reads,
        groups=min(every, _GROUPS),
        matrices=(stacked,) if weights == "matrices" and blocks else (),
        heads=((1, 1), (1, 1, 1)),
    )


_GROUPS = 20
"""Groups of sequences whose moments are kept apart (``capture.accumulate``), at most."""


def _weights(study: Study, series: Series, shape: Shape | None) -> int:
    """Bytes of the checkpoints that rules write, as their hub lists them, else in float32.

    Of those that are removed once captured, one is captured while the next is fetched; a folder in common keeps all.
    """
    made = [_bytes(series.downloads.get(found.id, {}), shape) for found in series.found if found.made_by]
    source = study.models[series.model].source
    if isinstance(source, Hub) and source.clean == "after_capture" and not study.storage.weights:
        made = sorted(made)[-2:]
    return sum(made)


def _bytes(download: Mapping[str, Any], shape: Shape | None) -> int:
    listed = sum(int(file["bytes"]) for file in download.get("files", {}).values())
    return listed or 4 * (shape.parameters if shape else 0)
