"""Queries, keys and logits after rotary embedding, read where the model computes attention (Godey et al. 2024).

An attention function registered with transformers sees them in every family that has that seam; sums are
added up a sequence at a time, so no (n, T, T) tensor outlives its batch.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from isotrace.capture.inputs import forward_arguments, is_encoder_decoder
from isotrace.capture.trace import as_tensor
from isotrace.corpus.sample import IGNORED
from isotrace.errors import DataError
from isotrace.geometry.head_sums import HeadSums, add, sequence_sums

NAME = "isotrace"


class Unavailable(DataError):
    """Attention of this family cannot be read; everything else of it can."""


class Reader:
    """Collects the sums of every attention layer while a batch runs; set ``bucket`` (b, T) before each."""

    def __init__(self, buckets: tuple[str, ...]) -> None:
        self.buckets = buckets
        self.bucket: NDArray[np.integer] = np.empty((0, 0), np.int64)
        self.sums: dict[int, HeadSums] = {}
        self._layers: dict[nn.Module, int] = {}

    def read(self, module: nn.Module, query: Tensor, key: Tensor, logits: Tensor, visible: Tensor) -> None:
        """query (b, H, T, d_h), key (b, K, T, d_h), logits (b, H, T, T), visible (b, T, T)."""
        layer = self._layers.setdefault(module, len(self._layers))  # in order of depth; not every family numbers them
        for i in range(query.shape[0]):
            one = sequence_sums(
                layer,
                self.buckets,
                query=_array(query[i]),
                key=_array(key[i]),
                logits=_array(logits[i]),
                visible=visible[i].cpu().numpy(),
                bucket=self.bucket[i],
            )
            self.sums[layer] = add(self.sums[layer], one) if layer in self.sums else one


_reader: list[Reader] = []


@contextmanager
def reading(reader: Reader) -> Iterator[None]:
    """Send what attention layers compute to ``reader``."""
    _reader.append(reader)
    try:
        yield
    finally:
        _reader.pop()


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """Softmax attention as the eager path computes it, telling the reader what it saw.

    query (b, H, T, d_h); key, value (b, K, T, d_h); attention_mask (b, 1, T, T) and position_bias (1, H, T, T; T5)
    are added to the logits.
    """
    unread = [name for name in ("softcap", "s_aux") if others.get(name) is not None]
    if unread:
        raise Unavailable(f"{type(module).__name__}: attention is not available, {unread[0]} would be left out")
    group = query.shape[1] // key.shape[1]
    keys, values = key.repeat_interleave(group, dim=1), value.repeat_interleave(group, dim=1)
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = torch.matmul(query, keys.transpose(2, 3)) * scale
    b, length = logits.shape[0], logits.shape[2]
    visible = torch.ones((b, length, length), dtype=torch.bool, device=logits.device)
    if attention_mask is not None:
        mask = attention_mask[..., :length]
        visible = (mask > torch.finfo(mask.dtype).min / 2).expand(b, -1, length, length)[:, 0]
        logits = logits + mask
    if position_bias is not None:
        logits = logits + position_bias
    if _reader:
        _reader[-1].read(module, query, key, logits, visible)
    weights = nn.functional.softmax(logits, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(weights, values).transpose(1, 2).contiguous(), weights


AttentionInterface.register(NAME, attend)
AttentionMaskInterface.register(NAME, eager_mask)


@contextmanager
def _implementation(model: Any, name: str) -> Iterator[None]:
    """The model with another attention function for a while."""
    before = model.config._attn_implementation
    model.set_attn_implementation(name)
    try:
        yield
    finally:
        model.set_attn_implementation(before)


def attention_sums(
    model: Any,
    inputs: NDArray[np.integer],
    bucket: NDArray[np.integer],
    buckets: tuple[str, ...],
    *,
    batch_size: int,
) -> list[HeadSums]:
    """Sums of every attention layer over passes (p, T); bucket (p, T) is -1 for tokens of no bucket."""
    reader = Reader(buckets)
    device = next(model.parameters()).device
    with _implementation(model, NAME), reading(reader), torch.no_grad():
        for start in range(0, len(inputs), batch_size):
            batch = slice(start, start + batch_size)
            reader.bucket = bucket[batch]
            _run(model, as_tensor(inputs[batch], device))
    if not reader.sums:
        raise Unavailable(f"{type(model).__name__}: attention is not available, its layers offer no seam to read it")
    return [reader.sums[layer] for layer in sorted(reader.sums)]


def _run(model: Any, ids: Tensor) -> None:
    """The blocks alone, without a head; of an encoder-decoder its encoder, where activations are captured too."""
    if is_encoder_decoder(model):
        model.get_encoder()(input_ids=ids)
    else:
        model.base_model(**forward_arguments(model, ids, torch.full_like(ids, IGNORED)))


def _array(tensor: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = tensor.double().cpu().numpy()
    return array
