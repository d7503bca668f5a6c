"""What a study's models need of more than one key: corpora, ranks, context and early checkpoints.

Imported while the workflow is parsed, as ``study`` is; which mistakes are refused is our choice.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrace.checkpoints.classes import PERCEIVED
from isotrace.checkpoints.locked import committed_lock
from isotrace.corpus.shape import CONTEXT
from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.media import MEDIA
from isotrace.settings.sources import Gguf, Hub, Init, Training, Vectors

if TYPE_CHECKING:
    from isotrace.study import Study


def check_model(name: str, model: Model, study: "Study") -> None:
    """ConfigError, naming the key, for a model that cannot be analysed as configured."""
    where = f"models.{name}"
    if isinstance(model.source, Vectors):
        _check_dumped(where, model, study)
    else:
        _check_loaded(where, name, model, study)
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


def _check_dumped(where: str, model: Model, study: "Study") -> None:
    """Keys of what is loaded or read mean nothing for vectors; buckets need the ids that they are made of."""
    assert isinstance(model.source, Vectors)
    arrays = model.source.arrays
    if model.modality != "text":
        raise ConfigError(f"{where}.modality: {model.modality} is of what is loaded; leave it out of dumped vectors")
    if study.buckets.kind == "energy" and arrays.token_id is not None:
        raise ConfigError(f"buckets.kind: energy is of images and audio, and {where} has token ids; use mass")
    if study.buckets.by == "target" and arrays.token_id is not None and arrays.target_id is None:
        raise ConfigError(f"{where}.source.arrays.target_id: name the array of predicted ids, for buckets.by: target")
    for name in ("corpus", "modules"):
        if getattr(model, name) is not None:
            raise ConfigError(f"{where}.{name}: of dumped vectors nothing is loaded and no text is read; leave it out")


def _check_loaded(where: str, name: str, model: Model, study: "Study") -> None:
    """The corpus, the loss and the buckets of a model that is loaded."""
    perceives = model.task in PERCEIVED
    if model.objective == "none" and not perceives:
        raise ConfigError(
            f"{where}.objective: none is for dumped vectors, images, audio and bytes; text has a loss, clm or mlm"
        )
    if not study.corpora:
        raise ConfigError(f"corpora: name a corpus, which {where} reads")
    if model.corpus is None and len(study.corpora) > 1:
        raise ConfigError(f"{where}.corpus: name one of {sorted(study.corpora)}")
    if study.corpus_of(name) not in study.corpora:
        raise ConfigError(f"{where}.corpus: {model.corpus!r} is not among corpora {sorted(study.corpora)}")
    media = next((m for m, kinds in MEDIA.items() if isinstance(study.corpora[study.corpus_of(name)], kinds)), "text")
    if media != (model.modality if model.modality in MEDIA else "text"):
        raise ConfigError(
            f"{where}.corpus: {study.corpus_of(name)} holds {media}, but the modality is {model.modality}"
        )
    if model.modality == "bytes" and isinstance(model.source, Training):
        raise ConfigError(f"{where}.modality: bytes are not trained on here; name stored checkpoints, or source init")
    if perceives:
        _check_perceived(where, model)
    if media == "text" and study.buckets.kind == "energy":
        raise ConfigError(f"buckets.kind: energy is of images and audio, and {where} reads text; use mass")


def _check_perceived(where: str, model: Model) -> None:
    """Keys that mean nothing for what reads no text."""
    if model.objective != "none":
        raise ConfigError(f"{where}.objective: {model.objective} is a loss of text; of {model.modality} write none")
    if model.modules is not None:
        raise ConfigError(
            f"{where}.modules: the sites of {model.modality} models are found, not declared; leave it out"
        )
    if isinstance(model.source, Training | Gguf):
        raise ConfigError(
            f"{where}.source.kind: {model.source.kind} is for text; checkpoints of {model.modality} are local, hub or "
            f"init"
        )
    if isinstance(model.source, Hub) and model.source.remote_code is not None:
        raise ConfigError(f"{where}.source.remote_code: code of a model's own is run for text only; leave it out")


def _architecture(file: Path) -> dict[str, Any]:
    """The config of a checkpoint, as far as it can be read; what is broken there is the audit's to say."""
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _check_architecture(where: str, architecture: dict[str, Any], study: "Study") -> None:
    width = next((architecture[k] for k in ("hidden_size", "n_embd", "d_model") if k in architecture), None)
    if width is not None and 2 * max(study.bases.ranks) > width:
        raise ConfigError(f"bases.ranks: {max(study.bases.ranks)} is above half the width {width} of {where}")
    context = next((architecture[k] for k in CONTEXT if k in architecture), None)
    if context is not None and study.tokens.sequence_length > context:
        raise ConfigError(
            f"tokens.sequence_length: {study.tokens.sequence_length} is above the context {context} of {where}"
        )
