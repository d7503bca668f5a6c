"""Queries, keys and logits after rotary embedding, read where the model computes attention (Godey et al. 2024).

An attention function registered with transformers sees them in every family that has that seam, declared adapters
in some that have none; sums are added up a run of positions at a time, so no (n, T, T) tensor is ever held.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, eager_mask

from isotrace.capture.adapters import Adapter, adapted
from isotrace.capture.inputs import forward_arguments, is_encoder_decoder
from isotrace.capture.scores import Scores
from isotrace.capture.trace import as_tensor
from isotrace.corpus.sample import IGNORED
from isotrace.errors import DataError
from isotrace.geometry.head_sums import Float, Grouped, HeadSums, add, row_sums, token_sums, without_second

Run = Callable[[NDArray[Any]], object]
"""A forward pass through the attention layers over a batch of inputs (b, ...)."""

NAME = "isotrace"
MASK_BYTES = 2**25
"""Bytes of the float32 mask (b, 1, T, T) that a batch may take."""


class Unavailable(DataError):
    """Attention of this family cannot be read; everything else of it can."""


class Reader:
    """Collects the sums of every attention layer while a batch runs; set ``bucket`` (b, T), ``group`` (b,) before."""

    def __init__(self, buckets: tuple[str, ...]) -> None:
        self.buckets = buckets
        self.bucket: NDArray[np.integer] = np.empty((0, 0), np.int64)
        self.group: NDArray[np.integer] = np.empty(0, np.int64)
        self._sums: dict[tuple[int, int], HeadSums] = {}  # by layer and group, without second moments
        self._second: dict[int, Float] = {}  # one a layer, whatever the number of groups
        self._layers: dict[nn.Module, int] = {}

    def tokens(self, module: nn.Module, scores: Scores) -> None:
        """Add the queries and keys of a layer."""
        layer = self._layer(module)
        for group, bucket, *given in zip(self.group, self._buckets(scores), scores.query, scores.key, strict=True):
            query, key = map(_array, given)
            one = token_sums(layer, self.buckets, query=query, key=key, bucket=bucket)
            at, slim = (layer, int(group)), without_second(one)
            self._sums[at] = add(self._sums[at], slim) if at in self._sums else slim
            self._second[layer] = self._second[layer] + one.q_second if layer in self._second else one.q_second

    def rows(self, module: nn.Module, scores: Scores, rows: slice, logits: Tensor, visible: Tensor) -> None:
        """Add a run of a layer's query positions: logits (b, H, R, T), visible (b, R, T)."""
        sink = [] if scores.sink is None else [-1]
        for i, (group, bucket) in enumerate(zip(self.group, self._buckets(scores), strict=True)):
            at = self._layer(module), int(group)
            self._sums[at] = row_sums(
                self._sums[at],
                logits=_array(logits[i]),
                visible=visible[i].cpu().numpy(),
                query_bucket=bucket[rows],
                key_bucket=np.append(bucket, np.array(sink, bucket.dtype)),
            )

    def grouped(self) -> list[Grouped]:
        """What was collected, by depth."""
        found = []
        for layer, second in sorted(self._second.items()):
            groups = [one for (n, _), one in sorted(self._sums.items()) if n == layer]
            found.append(Grouped(replace(reduce(add, groups), q_second=second), tuple(groups)))
        return found

    def _buckets(self, scores: Scores) -> NDArray[np.integer]:
        positions, known = scores.query.shape[2], self.bucket.shape[1]
        if scores.at is None and positions != known:
            raise Unavailable(f"attention is not available: a layer attends over {positions} positions, not {known}")
        return self.bucket if scores.at is None else self.bucket[:, scores.at.cpu().numpy()]

    def _layer(self, module: nn.Module) -> int:
        return self._layers.setdefault(module, len(self._layers))  # in order of depth; not every family numbers them


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
    softcap: float | None = None,
    s_aux: Tensor | None = None,
    **_others: Any,
) -> tuple[Tensor, None]:
    """Softmax attention as the eager path computes it, telling the reader what it saw.

    query (b, H, T, d_h); key, value (b, K, T, d_h); attention_mask (b, 1, T, T) and position_bias (1, H, T, T; T5)
    are added to the logits, soft-capped before (Gemma 2); s_aux (H,) are sinks (GPT-OSS).
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    scores = Scores(query, key, scale, attention_mask, position_bias, softcap, s_aux)
    reader = _reader[-1] if _reader else None
    if reader:
        reader.tokens(module, scores)
    values = value.repeat_interleave(query.shape[1] // value.shape[1], dim=1)
    read = []
    for rows, logits, visible in scores.runs():
        if reader:
            reader.rows(module, scores, rows, logits, visible)
        weights = nn.functional.softmax(logits, dim=-1, dtype=torch.float32).to(query.dtype)
        read.append(torch.matmul(weights[..., : values.shape[2]], values))
    return torch.cat(read, dim=2).transpose(1, 2).contiguous(), None


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


@contextmanager
def _hooked(found: Mapping[nn.Module, Adapter], reader: Reader) -> Iterator[None]:
    """Read layers that compute attention out of sight, by what their adapters make of what they are given."""

    def watch(module: nn.Module) -> Any:
        def hook(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], _output: Any) -> None:
            scores = found[module](module, *given, length=reader.bucket.shape[1], **named)
            reader.tokens(module, scores)
            for rows, logits, visible in scores.runs():
                reader.rows(module, scores, rows, logits, visible)

        return module.register_forward_hook(hook, with_kwargs=True)

    handles = [watch(module) for module in found]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def attention_sums(
    model: Any,
    inputs: NDArray[np.integer],
    bucket: NDArray[np.integer],
    buckets: tuple[str, ...],
    *,
    batch_size: int,
) -> list[HeadSums]:
    """Sums of every attention layer over passes (p, T); bucket (p, T) is -1 for tokens of no bucket."""
    one = np.zeros(len(inputs), np.int64)
    return [layer.total for layer in grouped_sums(model, inputs, bucket, buckets, group=one, batch_size=batch_size)]


def grouped_sums(
    model: Any,
    inputs: NDArray[Any],
    bucket: NDArray[np.integer],
    buckets: tuple[str, ...],
    *,
    group: NDArray[np.integer],
    batch_size: int,
    run: Run | None = None,
) -> list[Grouped]:
    """As ``attention_sums``, and by group of sequences as well; group (p,).

    run: what is done with a batch of inputs; None passes them through the blocks as token ids. T is the number of
    positions, which other inputs than ids need not have. Unavailable where no layer lets itself be read.
    """
    reader, by_adapter = Reader(buckets), adapted(model)
    device = next(model.parameters()).device
    passed = run or (lambda ids: _run(model, as_tensor(ids, device)))
    size = max(1, min(batch_size, MASK_BYTES // (4 * bucket.shape[1] ** 2)))
    with ExitStack() as stack:
        if by_adapter:
            stack.enter_context(_hooked(by_adapter, reader))
        else:
            stack.enter_context(_implementation(model, NAME))
            stack.enter_context(reading(reader))
        stack.enter_context(torch.no_grad())
        for start in range(0, len(inputs), size):
            batch = slice(start, start + size)
            reader.bucket, reader.group = bucket[batch], group[batch]
            passed(inputs[batch])
    found = reader.grouped()
    if not found:
        raise Unavailable(f"{type(model).__name__}: attention is not available, its layers offer no seam to read it")
    return found


def _run(model: Any, ids: Tensor) -> None:
    """The blocks alone, without a head; of an encoder-decoder its encoder, where activations are captured too."""
    if is_encoder_decoder(model):
        model.get_encoder()(input_ids=ids)
    else:
        model.base_model(**forward_arguments(model, ids, torch.full_like(ids, IGNORED)))


def _array(tensor: Tensor) -> NDArray[np.float64]:
    array: NDArray[np.float64] = tensor.double().cpu().numpy()
    return array
