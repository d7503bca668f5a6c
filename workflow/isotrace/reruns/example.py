"""A study that has every kind of source, corpus and rule, with empty files in place of what they would read.

Small enough that a graph of its jobs takes a moment; no job of it is ever run.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

from isotrace.settings.analysis import FigureName
from isotrace.study import Study

WIDTH, STEPS, TOTAL = 64, (0, 2, 5, 20), 20
COMMIT = "0" * 40
SIZE = {
    "hidden_size": WIDTH,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}
ARRAYS = ("activations", "gradients", "token_id", "sequence", "position", "target_id", "loss", "split")
NEOX = {"model_type": "gpt_neox", **SIZE}
DRAWN = {"kind": "init", "seeds": [0, 1]}
TRAINED = {"kind": "train", "architecture": NEOX, "vocabulary": 512, "steps": list(STEPS)}
BYTES = {"modality": "bytes", "corpus": "text"}
MODELS: dict[str, dict[str, Any]] = {
    "trained": {"objective": "clm", "corpus": "text", "source": TRAINED | {"steps": [0, 2, 5, 7, 20]}},
    "masked": {
        "objective": "mlm",
        "corpus": "mixed",
        "source": TRAINED | {"architecture": NEOX | {"model_type": "modernbert"}},
    },
    "runs": {"objective": "clm", "corpus": "text", "seeds": [0], "source": TRAINED},
    "stored": {"objective": "clm", "corpus": "text", "source": {"kind": "local", "path": "stored/checkpoint-{step}"}},
    "drawn": {"objective": "clm", "corpus": "streamed", "source": DRAWN | {"architecture": NEOX}},
    "quantised": {
        "objective": "clm",
        "corpus": "text",
        "total_steps": 4 * TOTAL,
        "source": {"kind": "gguf", "path": "quantised.gguf", "step": TOTAL, "with_init": True},
    },
    "fetched": {"objective": "clm", "corpus": "text", "source": {"kind": "hub", "repo": "org/fetched"}},
    "dumped": {
        "objective": "none",
        "source": {"kind": "vectors", "path": "dumps/{step}", "arrays": {name: name for name in ARRAYS}},
    },
    "bytes": {"objective": "mlm", "source": DRAWN | {"architecture": {"model_type": "t5", "d_model": WIDTH}}} | BYTES,
    "characters": {
        "objective": "none",
        "source": DRAWN | {"architecture": SIZE | {"model_type": "canine", "hidden_size": WIDTH}},
    }
    | BYTES,
    "pictures": {
        "objective": "none",
        "modality": "image",
        "corpus": "images",
        "source": DRAWN | {"architecture": {"model_type": "vit", **SIZE}},
    },
    "sounds": {
        "objective": "none",
        "modality": "audio",
        "corpus": "recordings",
        "source": DRAWN | {"architecture": {"model_type": "wav2vec2", **SIZE}},
    },
    "made": {
        "objective": "none",
        "modality": "audio",
        "corpus": "tones",
        "source": DRAWN | {"architecture": {"model_type": "wav2vec2", **SIZE}},
    },
}
CORPORA: dict[str, dict[str, Any]] = {
    "text": {"source": "files", "paths": ["text.txt"], "language": "en"},
    "dump": {"source": "mediawiki", "paths": ["dump.xml"], "language": "en"},
    "streamed": {"source": "datasets", "name": "org/text", "revision": COMMIT, "language": "en"},
    "mixed": {"source": "mixture", "parts": {"text": 1.0, "dump": 1.0}},
    "images": {"source": "images", "paths": ["a.png"]},
    "recordings": {"source": "audio", "paths": ["a.wav"]},
    "tones": {"source": "tones"},
}
CHOICES: dict[str, Any] = {
    "tokens": {"sequence_length": 64},
    "buckets": {"number": 2},
    "bases": {"methods": ["pca", "svd"], "ranks": [2, 4]},
    "isotropy": {"ranks": [2, 4], "null_spaces": ["complement", "ambient"]},
    "dynamics": {"rank": 4, "claims": "claims.yaml"},
    "untrained": {"seeds": [0]},
    "figures": {"names": [name for name in get_args(FigureName) if name != "early_late"]},
    "execution": {"batch_buckets": True},
}
"""What differs from the defaults, so that each key has another legal value."""


def example(*names: str) -> dict[str, Any]:
    """The config with every key written out, of all models or of these alone."""
    models = {name: model for name, model in MODELS.items() if not names or name in names}
    read = {model["corpus"] for model in models.values() if "corpus" in model}
    parts = {part for name in read for part in CORPORA[name].get("parts", ())}
    corpora = {name: corpus for name, corpus in CORPORA.items() if name in read | parts}
    study = Study.model_validate({"study": "example", "corpora": corpora, "models": models, **CHOICES})
    return study.model_dump(mode="json")


def write_files(folder: Path) -> None:
    """What the configs of the example name, empty but for what is read while the workflow is parsed."""
    empty = ["text.txt", "more.txt", "dump.xml", "more.xml", "a.png", "b.png", "a.wav", "b.wav", "scores.csv"]
    empty += ["quantised.gguf", "other.gguf", "counts.npy", "claims.yaml", "other.yaml", "words/tokenizer.json"]
    empty += [f"{place}/{step}/{name}.npy" for place in ("dumps", "else") for step in STEPS for name in ARRAYS]
    empty += [f"dumps/{step}/other.npy" for step in STEPS]
    for name in empty:
        _write(folder / name, " ")
    for place in ("stored", "moved"):
        for step in STEPS[1:]:
            _write_checkpoint(folder / place / f"checkpoint-{step}")
    _write_checkpoint(folder / "shape")
    for name, repo in (("fetched", "org/fetched"), ("other", "org/other")):
        _write(folder / "config" / "series" / f"{name}.json", json.dumps(_series(name, repo)))
    for model in [*MODELS, "runs-seed0", "runs-seed1"]:
        _write(folder / "config" / "locks" / f"{model}.lock.json", "{}")


def _write_checkpoint(folder: Path) -> None:
    for name, content in {"config.json": NEOX, "tokenizer.json": {}, "preprocessor_config.json": {}}.items():
        _write(folder / name, json.dumps(content))
    _write(folder / "model.safetensors", " ")


def _series(name: str, repo: str) -> Mapping[str, Any]:
    files = {"config.json": {"bytes": 1}, "model.safetensors": {"bytes": 1}, "tokenizer.json": {"bytes": 1}}
    beside = {"repo": repo, "revision": "main", "commit": COMMIT, "files": files}
    checkpoints = [beside | {"label": f"step{step}", "step": step, "revision": f"step{step}"} for step in STEPS]
    known = {"model": name, "repo": repo, "total_steps": TOTAL, "config": NEOX}
    return known | {"checkpoints": checkpoints, "tokenizer": beside, "code": beside}


def _write(file: Path, content: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
