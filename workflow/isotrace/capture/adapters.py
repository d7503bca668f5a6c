"""Attention of families that compute it out of sight of transformers' attention interface, one function a family.

An adapter recomputes queries and keys from what the layer is given, with the layer's own weights (our choice).
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.capture.scores import Scores

Adapter = Callable[..., Scores]
ADAPTERS: dict[str, Adapter] = {}
"""By the name of the layer's class."""


def adapter(layer: str) -> Callable[[Adapter], Adapter]:
    """Register a function (module, *what it is given, length: tokens of the sequence, ...) -> Scores."""

    def keep(function: Adapter) -> Adapter:
        ADAPTERS[layer] = function
        return function

    return keep


def adapted(model: nn.Module) -> dict[nn.Module, Adapter]:
    """The attention layers of a model that need an adapter and have one."""
    return {m: ADAPTERS[type(m).__name__] for m in model.modules() if type(m).__name__ in ADAPTERS}


@adapter("FalconAttention")
def falcon(
    module: Any,
    hidden_states: Tensor,
    alibi: Tensor | None,
    attention_mask: Tensor | None,
    position_embeddings: tuple[Tensor, Tensor] | None = None,
    *_more: Any,
    length: int,
    **_others: Any,
) -> Scores:
    """Falcon: fused queries, keys and values, multi-query or grouped, rotary or with ALiBi (Press et al. 2022)."""
    query, key, _ = (x.transpose(1, 2) for x in module._split_heads(module.query_key_value(hidden_states)))
    if alibi is None and position_embeddings is not None:
        from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb

        query, key = apply_rotary_pos_emb(query, key, *position_embeddings)
    shared = key.shape[1] if not module.new_decoder_architecture else module.num_kv_heads
    key = key[:, :: key.shape[1] // shared]  # the newer layout repeats a group's key for each of its queries
    bias = None if alibi is None else alibi.view(len(query), -1, 1, length) * module.inv_norm_factor
    allowed = None
    if attention_mask is None:
        allowed = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
    return Scores(query, key, 1 / math.sqrt(module.head_dim), attention_mask, bias, allowed=allowed)


@adapter("CanineAttention")
def canine(
    module: Any, hidden_states: Tensor, attention_mask: Tensor | None = None, *_more: Any, length: int, **_others: Any
) -> Scores:
    """CANINE: windows of characters, then molecules of them, then all characters (Clark et al. 2022).

    A molecule counts as the character at which it begins, the first of them as the first character.
    """
    inner = module.self
    size = (inner.num_attention_heads, inner.attention_head_size)
    query, key = (f(hidden_states).unflatten(-1, size).transpose(1, 2) for f in (inner.query, inner.key))
    positions = torch.arange(query.shape[2], device=query.device)
    allowed, at = None, None
    if module.local:
        window = positions // module.attend_to_chunk_width
        allowed = window[:, None] == window[None, :]
        attention_mask = None  # without padding it hides nothing
    if len(positions) != length:
        rate = math.ceil(length / len(positions))
        at = ((positions - 1).clamp(min=0) * rate).clamp(max=length - 1)
    return Scores(query, key, 1 / math.sqrt(size[1]), attention_mask, allowed=allowed, at=at)
