"""Activations and true gradients at every site from one forward and one backward pass.

The differentiated loss is the sum over a sequence's targets, in nats: g_t = d(sum of losses)/d h_t, which
cannot depend on batch size, padding or order (a mean loss would halve when the batch doubles).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isotrace.errors import DataError

IGNORED = -100


@dataclass(frozen=True)
class Trace:
    """One batch: activations, gradients by site (b, T, d) in float32; losses (b, T) in nats, NaN without a target."""

    activations: dict[str, Tensor]
    gradients: dict[str, Tensor]
    losses: Tensor


def trace(model: nn.Module, sites: Mapping[str, nn.Module], input_ids: Tensor, targets: Tensor) -> Trace:
    """Run one batch; input_ids (b, T), targets (b, T) aligned with the position that predicts, -100 for none.

    DataError when a value is not finite, before anything is kept.
    """
    with recorded(sites) as outputs:
        logits = model(input_ids=input_ids).logits
    losses = _losses(logits, targets)
    names = list(sites)
    gradients = torch.autograd.grad(losses.nansum(), [outputs[name] for name in names])
    done = Trace(
        {name: outputs[name].detach().float() for name in names},
        {name: gradient.float() for name, gradient in zip(names, gradients, strict=True)},
        losses.detach(),
    )
    _require_finite(done)
    return done


def as_tensor(ids: NDArray[np.integer], device: torch.device) -> Tensor:
    """Ids of any integer type as the int64 tensor that models and indexing take."""
    return torch.from_numpy(np.ascontiguousarray(ids, np.int64)).to(device)


@contextmanager
def recorded(sites: Mapping[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Collect each site's output tensor; the embedding's is made to require a gradient, parameters are not."""
    outputs: dict[str, Tensor] = {}
    handles = [module.register_forward_hook(_keep(name, outputs)) for name, module in sites.items()]
    embedding = next(iter(sites.values()))
    handles.insert(0, embedding.register_forward_hook(lambda _m, _i, output: output.requires_grad_(), prepend=True))
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def _keep(name: str, outputs: dict[str, Tensor]):  # type: ignore[no-untyped-def]
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        # Blocks return a bare tensor or a tuple by family; indexing a bare tensor would take one sequence.
        outputs[name] = output if isinstance(output, Tensor) else output[0]

    return hook


def _losses(logits: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy a position in nats, (b, T); NaN where there is no target."""
    b, length, vocabulary = logits.shape
    losses = nn.functional.cross_entropy(
        logits.float().view(b * length, vocabulary),  # (b, T, V) -> (b*T, V)
        targets.reshape(b * length),
        ignore_index=IGNORED,
        reduction="none",
    ).view(b, length)
    return losses.masked_fill(targets == IGNORED, float("nan"))


def _require_finite(done: Trace) -> None:
    for what, values in (("activations", done.activations), ("gradients", done.gradients)):
        for site, tensor in values.items():
            if not torch.isfinite(tensor).all():
                raise DataError(f"{what} at {site} are not finite; the checkpoint or its dtype is broken")
