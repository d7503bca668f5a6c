"""Training with attention logits times a factor, and checkpoints that hold it in their weights.

Attention's temperature as an intervention is our choice; a stored model is an ordinary one of its family.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isotrace.errors import ConfigError

if TYPE_CHECKING:
    from torch import Tensor, nn

LAYERS = ("GPTNeoXAttention", "LlamaAttention", "Olmo2Attention", "PhiAttention", "Qwen3Attention")
"""Attention layers, by class name, whose logits are linear in what ``_queries`` finds."""
_NORMS = ("q_norm", "q_layernorm")


def scale_attention(model: "nn.Module", scale: float) -> None:
    """Multiply the logits of every attention layer by ``scale`` from now on; 1 changes nothing.

    ConfigError for a family whose layers are not among ``LAYERS``.
    """
    if scale == 1:
        return
    for layer in _layers(model):
        layer.scaling = float(layer.scaling) * scale  # type: ignore[arg-type, assignment]


@contextmanager
def folded(model: "nn.Module", scale: float) -> Iterator[None]:
    """Inside, the queries' weights carry the factor of `scale_attention`; afterwards they are as before, bit for bit.

    What is saved inside computes the same logits without the factor, up to float32 rounding.
    """
    import torch

    if scale == 1:
        yield
        return
    parts = [part for layer in _layers(model) for part in _queries(layer)]
    before = [part.clone() for part in parts]
    with torch.no_grad():
        for part in parts:
            part.mul_(scale)
    try:
        yield
    finally:
        with torch.no_grad():
            for part, value in zip(parts, before, strict=True):
                part.copy_(value)


def _layers(model: "nn.Module") -> list["nn.Module"]:
    found = [module for module in model.modules() if type(module).__name__ in LAYERS]
    if not found:
        raise ConfigError(f"attention_scale: {type(model).__name__} has no layer among {', '.join(LAYERS)}")
    return found


def _queries(layer: "nn.Module") -> list["Tensor"]:
    """Views of the last linear weights before the queries: those of their norm, where there is one."""
    modules = dict(layer.named_children())
    if "query_key_value" in modules:
        # Each head's queries, keys and values, one after another.
        heads = (-1, 3, int(layer.head_size))  # type: ignore[arg-type]
        return [p.detach().view(*heads, *p.shape[1:])[:, 0] for p in modules["query_key_value"].parameters()]
    source = next(modules[name] for name in (*_NORMS, "q_proj") if name in modules)
    return [parameter.detach() for parameter in source.parameters()]
