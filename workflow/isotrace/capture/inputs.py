"""What a forward call is given: ids, and with padding a mask and positions, so that padding changes no number.

Denoising of encoder-decoders follows Raffel et al. 2020, 3.1.4 and 3.3.1 (BERT-style); the rest is our choice.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.corpus.sample import IGNORED


def forward_arguments(
    model: nn.Module, input_ids: Tensor, targets: Tensor, attention_mask: Tensor | None = None
) -> dict[str, Any]:
    """Keyword arguments for one batch: input_ids (b, T), targets (b, T; -100 for none), attention_mask (b, T) of 0, 1.

    Without padding a model gets ids only, which keeps its fast attention. With padding it gets the mask, and
    positions counted from the mask where its family takes positions: left and right padding give the same numbers.
    The mask decides what is padding, never the id: where pad and eos share an id, a real eos stays real.

    An encoder-decoder is captured in its encoder. Our choice of task is BERT-style denoising: the encoder reads
    the masked ids, the decoder reads the original ids (the target where there is one, else the input) shifted
    right by one under the same mask, starting with the family's start id at the first attended position; position
    t of the decoder predicts the original id at t, so targets stay aligned with positions.
    """
    if attention_mask is not None and bool(attention_mask.all()):
        attention_mask = None
    arguments: dict[str, Any] = {"input_ids": input_ids}
    if attention_mask is not None:
        arguments["attention_mask"] = attention_mask
    if is_encoder_decoder(model):
        return arguments | _decoder_arguments(model, input_ids, targets, attention_mask)
    offset = _padding_offset(model)
    if _takes_positions(model) and (attention_mask is not None or offset):
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        arguments["position_ids"] = (mask.long().cumsum(-1) - 1).clamp(min=0) + offset
    return arguments


def is_encoder_decoder(model: nn.Module) -> bool:
    """Whether the model reads its ids with an encoder and predicts with a decoder."""
    return bool(getattr(getattr(model, "config", None), "is_encoder_decoder", False))


def _decoder_arguments(
    model: nn.Module, input_ids: Tensor, targets: Tensor, attention_mask: Tensor | None
) -> dict[str, Any]:
    original = torch.where(targets == IGNORED, input_ids, targets)
    start: int = model.config.decoder_start_token_id  # type: ignore[union-attr, assignment]
    mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask.long()
    before = nn.functional.pad(mask, (1, -1))  # (b, T), the mask one position earlier
    shifted = nn.functional.pad(original, (1, -1), value=start)
    shifted = shifted.masked_fill((mask == 1) & (before == 0), start)
    arguments: dict[str, Any] = {"decoder_input_ids": shifted, "use_cache": False}
    return arguments if attention_mask is None else arguments | {"decoder_attention_mask": attention_mask}


def _takes_positions(model: nn.Module) -> bool:
    return "position_ids" in inspect.signature(model.forward).parameters


def _padding_offset(model: nn.Module) -> int:
    """Where positions start: after the padding index of a position embedding that has one (RoBERTa), else at 0.

    Such a family counts positions by comparing ids with the pad id, which takes a real eos for padding.
    """
    for name, module in model.named_modules():
        if isinstance(module, nn.Embedding) and module.padding_idx is not None and "position" in name.split(".")[-1]:
            return module.padding_idx + 1
    return 0
