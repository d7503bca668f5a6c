"""What the head of a model of images or sound is asked, and its loss: a sum over pieces, none of which sees another.

Heads that classify or spell are asked for what they themselves find likeliest, since there are no labels (our choice);
self-supervised ones for what was hidden from them, see ``masks``.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrace.perception.masks import Hidden, hidden_frames, hidden_patches

Given = Mapping[str, Tensor]


def _nothing(_hidden: Hidden) -> dict[str, Tensor]:
    return {}


def _hidden_patches(hidden: Hidden) -> dict[str, Tensor]:
    return {"bool_masked_pos": torch.from_numpy(hidden.at)}


def _hidden_frames(hidden: Hidden) -> dict[str, Tensor]:
    """Distractors (b, n, K) count frames of the whole batch, as transformers wants them."""
    first = torch.arange(len(hidden.at))[:, None, None] * hidden.at.shape[1]
    others = torch.from_numpy(hidden.others) + first
    return {"mask_time_indices": torch.from_numpy(hidden.at), "sampled_negative_indices": others}


def _likeliest(logits: Tensor) -> Tensor:
    """Cross-entropy of logits (..., V) against the likeliest class of each, summed."""
    flat = logits.flatten(0, -2).float()
    return cross_entropy(flat, flat.detach().argmax(dim=-1), reduction="sum")


def _own_answer(output: Any, _values: Tensor, _given: Given) -> Tensor:
    return _likeliest(output.logits)


def _own_visual_tokens(output: Any, _values: Tensor, given: Given) -> Tensor:
    """BEiT's tokeniser is no part of the model, so hidden patches are asked for the likeliest token (our choice)."""
    return _likeliest(output.logits[given["bool_masked_pos"]])


def _hidden_pixels(output: Any, values: Tensor, given: Given) -> Tensor:
    """|reconstruction - pixel| summed over the pixels and channels of hidden patches (Xie et al. 2022, SimMIM)."""
    b, _, height, width = values.shape
    masked = given["bool_masked_pos"]
    side = int(masked.shape[1] ** 0.5)
    pixels = masked.view(b, 1, side, side).repeat_interleave(height // side, 2).repeat_interleave(width // side, 3)
    loss: Tensor = ((output.reconstruction - values).abs() * pixels).float().sum()
    return loss


def _told_apart(output: Any, _values: Tensor, _given: Given) -> Tensor:
    """-log share of the frame's own code among it and its distractors, summed (Baevski et al. 2020, eq. 3)."""
    loss: Tensor = output.contrastive_loss
    return loss


@dataclass(frozen=True)
class Head:
    """``given``: arguments beside the pieces; ``loss`` of output, pieces and those arguments.

    hides: draws what is to be filled in, from config, pieces, patches or frames of each, seed; None: nothing is.
    """

    hides: Callable[[Any, Iterable[int], int, int], Hidden] | None
    given: Callable[[Hidden], dict[str, Tensor]]
    loss: Callable[[Any, Tensor, Given], Tensor]


HEADS = (
    (r"Classification", Head(None, _nothing, _own_answer)),
    (r"ForCTC$", Head(None, _nothing, _own_answer)),
    (r"^BeitForMaskedImageModeling$", Head(hidden_patches, _hidden_patches, _own_visual_tokens)),
    (r"^(ViT|DeiT)ForMaskedImageModeling$", Head(hidden_patches, _hidden_patches, _hidden_pixels)),
    (r"^Wav2Vec2(Conformer)?ForPreTraining$", Head(hidden_frames, _hidden_frames, _told_apart)),
)
"""Names of transformers' classes -> what their head is asked."""


def head_of(model: nn.Module) -> Head | None:
    """The head of a model that can be differentiated; None where there is none that is known."""
    return next((head for name, head in HEADS if re.search(name, type(model).__name__)), None)
