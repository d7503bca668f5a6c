"""The summed cross-entropy and its gradient where the output embedding reads, without ever holding all logits.

Rows that have a target go through the output embedding a run at a time, so a vocabulary of any size costs the
same memory; the softmax gradient p - y is exact (our choice of order, not an approximation).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.corpus.sample import IGNORED
from isotrace.errors import DataError

LOSS_BYTES = 2**26
"""Bytes of float32 logits held at once, unless a call says otherwise; some three times as much is the peak."""


@contextmanager
def intercepted(model: nn.Module) -> Iterator[list[Tensor]]:
    """Collect what the output embedding is given, (b, T, d'); it is run on no token itself.

    DataError for a model without a linear output embedding.
    """
    head = output_embedding(model)
    given: list[Tensor] = []

    def keep(_module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        given.append(inputs[0])
        return (inputs[0][..., :0, :], *inputs[1:])

    handle = head.register_forward_pre_hook(keep)
    try:
        yield given
    finally:
        handle.remove()


def output_embedding(model: Any) -> nn.Linear:
    """The linear map from the last hidden state to logits, asked of the model and never guessed by name."""
    head = model.get_output_embeddings()
    if not isinstance(head, nn.Linear):
        raise DataError(f"{type(model).__name__}: no linear output embedding, so there is no loss to differentiate")
    return head


def losses_and_gradient(
    head: nn.Linear, hidden: Tensor, targets: Tensor, *, loss_bytes: int = LOSS_BYTES
) -> tuple[Tensor, Tensor]:
    """Cross-entropy in nats (b, T), NaN without a target, and d(sum)/d hidden (b, T, d') in hidden's dtype.

    hidden (b, T, d'), targets (b, T), -100 for none. Results depend on ``loss_bytes`` in their last digits only.
    """
    losses = torch.full(targets.shape, float("nan"), device=hidden.device)
    gradient = torch.zeros_like(hidden)
    chosen = targets != IGNORED
    rows, wanted = hidden.detach()[chosen], targets[chosen]  # (b, T, d') -> (m, d')
    run = max(1, loss_bytes // (4 * head.weight.shape[0]))
    parts = [_one_run(head, a, b) for a, b in zip(torch.split(rows, run), torch.split(wanted, run), strict=True)]
    if parts:
        losses[chosen] = torch.cat([loss for loss, _ in parts])
        gradient[chosen] = torch.cat([g for _, g in parts])
    return losses, gradient


@torch.no_grad()
def _one_run(head: nn.Linear, rows: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Losses (m,) and gradients (m, d') of rows (m, d'); one float32 array (m, V), overwritten by its softmax."""
    logits = nn.functional.linear(rows, head.weight, head.bias).float()
    scale = logits.logsumexp(dim=1, keepdim=True)
    at = wanted[:, None]
    losses = scale - logits.gather(1, at)
    softmax = logits.sub_(scale).exp_()
    softmax.scatter_add_(1, at, torch.full_like(losses, -1.0))
    return losses[:, 0], softmax.to(rows.dtype) @ head.weight
