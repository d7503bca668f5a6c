"""What is known of a series of checkpoints before there is a config, and what its config.json tells of its loss.

Our choice: only names that transformers itself writes are believed; what is not known stays None and is asked for.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_LOSSES = {"ForCausalLM": "clm", "LMHeadModel": "clm", "ForMaskedLM": "mlm", "ForPreTraining": "mlm"}
"""Endings of class names -> objective."""
_T5 = ("t5", "mt5", "umt5")
_MEDIA = {
    "image": ("vit", "beit", "deit", "dinov2", "dinov2_with_registers"),
    "audio": ("wav2vec2", "hubert", "whisper"),
    "bytes": ("canine",),
}
"""Modalities that are no text -> model types that were tested."""
_WIDTH = ("hidden_size", "n_embd", "d_model")


@dataclass(frozen=True)
class Loss:
    """Objective and modality, as the config wants them; ``why`` says what tells so."""

    objective: str
    modality: str = "text"
    why: str = ""


@dataclass(frozen=True)
class Facts:
    """One series.

    kind: local, hub or vectors; place: its pattern or repo; steps: of its checkpoints, rising; loss: None where nothing
    tells; total_steps: of the whole training, None for the last stored one; tokenizer: a folder, None where the
    checkpoints have their own; labels: naming of the revisions of a hub repo; arrays: of a dump, by what they are;
    config: the model's own config.json; notes: by config key, what was found.
    """

    kind: str
    place: str
    steps: tuple[int, ...]
    loss: Loss | None = None
    total_steps: int | None = None
    tokenizer: str | None = None
    labels: str | None = None
    arrays: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def width(self) -> int | None:
        """The width of the residual stream, None where the config does not say."""
        return next((int(self.config[key]) for key in _WIDTH if isinstance(self.config.get(key), int)), None)


def loss_of(config: dict[str, Any], tokenizer: dict[str, Any] | None = None) -> Loss | None:
    """What a config.json tells of the loss; None where it names no class that is known."""
    named = next(iter(config.get("architectures") or ()), "")
    kind = config.get("model_type", "")
    media = next((m for m, kinds in _MEDIA.items() if kind in kinds), None)
    if media is not None:
        return Loss("none", media, f"model_type {kind}")
    if kind in _T5:
        reads = "bytes" if (tokenizer or {}).get("tokenizer_class", "").startswith("ByT5") else "text"
        return Loss("mlm", reads, f"the encoder of a {kind}")
    found = next((loss for end, loss in _LOSSES.items() if named.endswith(end)), None)
    return None if found is None else Loss(found, why=f"{named} in config.json")


def read_json(file: Path) -> dict[str, Any]:
    """The mapping in a JSON file; empty where there is none that can be read."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def span(steps: tuple[int, ...]) -> str:
    """How many checkpoints, and from which step to which."""
    if len(steps) == 1:
        return f"1 checkpoint, step {steps[0]:,}"
    return f"{len(steps)} checkpoints, step {steps[0]:,} to {steps[-1]:,}"
