"""Size of a model from its transformers config: parameters, width, layers, and what its passes cost.

Counts follow the tested families' modules (transformers 5); a config that leaves a field out has the family's default.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

_NAMES = {
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "num_heads"),
    "inner": ("n_inner", "ffn_dim", "d_ff", "intermediate_size", "hidden_dim"),
    "positions": ("max_position_embeddings", "n_positions"),
}


@dataclass(frozen=True)
class Family:
    """How the modules of a family are counted.

    defaults: vocabulary, width, layers, heads, inner width (0: four times the width), positions, of a config without
    them; norm: "none" has no parameters, "rms" a weight, "layer" a weight and a bias; learned: position embeddings;
    query_norm: parameters of norms of queries and keys, a head's or the whole; extra: rows besides; maps: linear maps
    of a block that read the residual stream, and of how many different tensors.
    """

    defaults: tuple[int, int, int, int, int, int]
    norm: Literal["none", "rms", "layer"] = "rms"
    gated: bool = False
    bias: bool = False
    learned: bool = False
    tied: bool = False
    query_norm: Literal["", "head", "whole"] = ""
    dense_head: bool = False
    final_norm: bool = True
    extra: int = 0
    decoder: bool = False
    maps: tuple[int, int] = (2, 2)


_BERT = (30522, 768, 12, 12, 3072, 512)
_ENCODER: dict[str, Any] = {
    "norm": "layer",
    "bias": True,
    "learned": True,
    "tied": True,
    "dense_head": True,
    "final_norm": False,
    "maps": (4, 2),
}
_LLAMA = Family((32000, 4096, 32, 32, 11008, 2048), gated=True, maps=(5, 2))

FAMILIES: dict[str, Family] = {
    "gpt_neox": Family((50432, 6144, 44, 64, 24576, 2048), norm="layer", bias=True),
    "llama": _LLAMA,
    "olmo": Family((50304, 4096, 32, 32, 11008, 2048), norm="none", gated=True, maps=(5, 2)),
    "olmo2": Family((50304, 4096, 32, 32, 11008, 2048), gated=True, query_norm="whole", maps=(5, 2)),
    "gpt2": Family((50257, 768, 12, 12, 0, 1024), norm="layer", bias=True, learned=True, tied=True),
    "opt": Family(
        (50272, 768, 12, 12, 3072, 2048), norm="layer", bias=True, learned=True, tied=True, extra=2, maps=(4, 2)
    ),
    # One norm a block and a bias of the head, which nearly make up for each other.
    "phi": Family((51200, 2048, 24, 32, 8192, 2048), norm="layer", bias=True, maps=(4, 1)),
    "qwen3": Family((151936, 4096, 32, 32, 22016, 32768), gated=True, query_norm="head", maps=(5, 2)),
    "eurobert": Family((128256, 768, 12, 12, 3072, 8192), gated=True, maps=(5, 2)),
    "modernbert": Family((50368, 768, 22, 12, 1152, 8192), gated=True, tied=True, dense_head=True),
    "bert": Family(_BERT, extra=2, **_ENCODER),
    "roberta": Family((50265, *_BERT[1:]), extra=2, **_ENCODER),
    "camembert": Family(_BERT, extra=2, **_ENCODER),
    "distilbert": Family((30522, 768, 6, 12, 3072, 512), **_ENCODER),
    "t5": Family((32128, 512, 6, 8, 2048, 512), tied=True, decoder=True, maps=(4, 2)),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of one model: d ``width``; H ``heads`` and K ``key_heads`` of width ``head``; ``inner`` of the MLP.

    tied: whether the head is the embedding; final_norm: whether a norm follows the last block; maps, reads: see
    `Family`; known: whether parameters were counted for a tested family, or guessed as those of a Llama.
    """

    family: str
    parameters: int
    vocabulary: int
    width: int
    layers: int
    heads: int
    key_heads: int
    head: int
    inner: int
    tied: bool
    final_norm: bool
    maps: int
    reads: int
    known: bool

    def sites(self, chosen: Sequence[str] | None) -> int:
        """Sites captured: those named, else all of up to 8 blocks, six of more, and both ends."""
        if chosen is not None:
            return len(chosen)
        return min(self.layers, 8 if self.layers <= 8 else 6) + 1 + self.final_norm

    def blocks(self, chosen: Sequence[str] | None) -> int:
        """Blocks among the sites captured."""
        if chosen is not None:
            return sum(site.startswith("block.") for site in chosen)
        return self.sites(None) - 1 - self.final_norm

    def flops(self, tokens: int, length: int) -> float:
        """Floating-point operations of one forward pass over ``tokens`` in sequences of ``length``."""
        looked_up = 0 if self.tied else self.vocabulary * self.width  # an embedding that is no head multiplies nothing
        applied = self.parameters - looked_up
        return tokens * (2 * applied + 4 * self.layers * length * self.heads * self.head)


def shape_of(config: Mapping[str, Any]) -> Shape | None:
    """The shape a config describes; None where it names neither its width nor a tested family."""
    config = config.get("text_config") or config
    name = str(config.get("model_type", ""))
    family = FAMILIES.get(name, _LLAMA)
    given = {key: _first(config, names) for key, names in _NAMES.items()}
    if name not in FAMILIES and not (given["width"] and given["layers"]):
        return None
    vocabulary, *rest = family.defaults
    vocabulary = int(config.get("vocab_size") or vocabulary)
    width, layers, heads, inner, positions = (
        int(given[key] or default) for key, default in zip(_NAMES, rest, strict=True)
    )
    inner = inner or 4 * width
    head = int(config.get("head_dim") or config.get("d_kv") or width // heads)
    key_heads = int(config.get("num_key_value_heads") or heads)
    shape = Shape(
        family=name,
        parameters=0,
        vocabulary=vocabulary,
        width=width,
        layers=layers,
        heads=heads,
        key_heads=key_heads,
        head=head,
        inner=inner,
        tied=bool(config.get("tie_word_embeddings", family.tied)),
        final_norm=family.final_norm,
        maps=family.maps[0],
        reads=family.maps[1],
        known=name in FAMILIES,
    )
    return Shape(**{**vars(shape), "parameters": _parameters(shape, family, config, positions)})


def _parameters(shape: Shape, family: Family, config: Mapping[str, Any], positions: int) -> int:
    """Entries of all weights, a tied head counted once."""
    d, inner = shape.width, shape.inner
    queries, keys = shape.heads * shape.head, shape.key_heads * shape.head
    norm = {"none": 0, "rms": d, "layer": 2 * d}[family.norm]
    gated = family.gated or "gated" in str(config.get("feed_forward_proj", ""))
    attention = 2 * d * (queries + keys)
    block = attention + (3 if gated else 2) * d * inner + 2 * norm
    block += {"": 0, "head": 2 * shape.head, "whole": queries + keys}[family.query_norm]
    block += (queries + 2 * keys + inner + 2 * d) if family.bias else 0
    ends = shape.vocabulary * d + norm  # the final norm, or an encoder's norm of its embedding
    ends += (positions + family.extra) * d if family.learned else 0
    ends += 0 if shape.tied else shape.vocabulary * d
    if family.dense_head:
        ends += d * d + norm + shape.vocabulary + (d if family.bias else 0) + (norm if family.final_norm else 0)
    if family.decoder:  # T5's decoder also attends to the encoder, after a norm of its own
        ends += int(config.get("num_decoder_layers") or shape.layers) * (block + attention + norm) + norm
    return shape.layers * block + ends


def _first(config: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((config[name] for name in names if config.get(name)), None)


def stored_parameters(folder: Path) -> int | None:
    """Entries of the tensors in a folder's safetensors files, from their headers; None without a readable one."""
    found = 0
    try:
        for file in sorted(folder.glob("*.safetensors")):
            with file.open("rb") as stream:
                header = json.loads(stream.read(int.from_bytes(stream.read(8), "little")))
            found += sum(math.prod(t["shape"]) for name, t in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, MemoryError):
        return None  # truncated or not safetensors: the audit says so
    return found or None
