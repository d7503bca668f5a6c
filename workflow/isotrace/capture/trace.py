"""Activations and true gradients at every site from one forward and one backward pass.

The differentiated loss is the sum over a sequence's targets, in nats: g_t = d(sum of losses)/d h_t, which
cannot depend on batch size, padding or order (a mean loss would halve when the batch doubles).
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from isotrace.capture.inputs import forward_arguments
from isotrace.capture.losses import LOSS_BYTES, intercepted, losses_and_gradient, output_embedding
from isotrace.errors import DataError


@dataclass(frozen=True)
class Trace:
    """One batch, float32: what sites put out, what linear maps read, and gradients of the summed loss.

    activations, gradients by site (b, T, d); losses (b, T) in nats, NaN without a target; map_inputs (b, T, d_in)
    and map_gradients (b, T, d_out), the gradient at a map's output, by map.
    """

    activations: dict[str, Tensor]
    gradients: dict[str, Tensor]
    losses: Tensor
    map_inputs: dict[str, Tensor] = field(default_factory=dict)
    map_gradients: dict[str, Tensor] = field(default_factory=dict)


def trace(
    model: nn.Module,
    sites: Mapping[str, nn.Module],
    input_ids: Tensor,
    targets: Tensor,
    attention_mask: Tensor | None = None,
    *,
    maps: Mapping[str, nn.Module] | None = None,
    loss_bytes: int = LOSS_BYTES,
) -> Trace:
    """Run one batch; input_ids, targets (b, T), targets aligned with the position that predicts, -100 for none.

    attention_mask (b, T) is 0 at padding; what stands there is of no meaning. DataError when a value is not finite.
    """
    maps = maps or {}
    with recorded(sites) as outputs, recorded(maps) as mapped, read_by(maps) as inputs, intercepted(model) as given:
        model(**forward_arguments(model, input_ids, targets, attention_mask))
    if not given:
        raise DataError(f"{type(model).__name__}: its output embedding is not called, so there is no loss")
    losses, above = losses_and_gradient(output_embedding(model), given[0], targets, loss_bytes=loss_bytes)
    asked = [*(outputs[name] for name in sites), *(mapped[name] for name in maps)]
    found = iter(torch.autograd.grad(given[0], asked, grad_outputs=above))
    shape = (*input_ids.shape, -1)  # some families flatten (b, T, d) to (b*T, d) before a map
    done = Trace(
        {name: outputs[name].detach().float() for name in sites},
        {name: next(found).float() for name in sites},
        losses,
        {name: inputs[name].detach().float().view(shape) for name in maps},
        {name: next(found).float().view(shape) for name in maps},
    )
    _require_finite(done)
    return done


def as_tensor(ids: NDArray[np.integer], device: torch.device) -> Tensor:
    """Ids of any integer type as the int64 tensor that models and indexing take."""
    return torch.from_numpy(np.ascontiguousarray(ids, np.int64)).to(device)


@contextmanager
def recorded(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Collect each module's first output of a pass, made to require a gradient; parameters never are."""
    outputs: dict[str, Tensor] = {}
    with _hooked(modules, lambda name, module: module.register_forward_hook(_keep_output(name, outputs))):
        yield outputs


@contextmanager
def read_by(modules: Mapping[str, nn.Module]) -> Iterator[dict[str, Tensor]]:
    """Collect the tensor that each module reads first in a pass."""
    inputs: dict[str, Tensor] = {}
    with _hooked(modules, lambda name, module: module.register_forward_pre_hook(_keep_input(name, inputs))):
        yield inputs


@contextmanager
def _hooked(
    modules: Mapping[str, nn.Module], hook: Callable[[str, nn.Module], torch.utils.hooks.RemovableHandle]
) -> Iterator[None]:
    handles = [hook(name, module) for name, module in modules.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _keep_output(name: str, outputs: dict[str, Tensor]):  # type: ignore[no-untyped-def]
    def hook(_module: nn.Module, _inputs: object, output: Tensor | tuple[Tensor, ...]) -> None:
        # Blocks return a bare tensor or a tuple by family; indexing a bare tensor would take one sequence.
        tensor = output if isinstance(output, Tensor) else output[0]
        if not tensor.requires_grad:
            tensor.requires_grad_()
        outputs.setdefault(name, tensor)

    return hook


def _keep_input(name: str, inputs: dict[str, Tensor]):  # type: ignore[no-untyped-def]
    def hook(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        inputs.setdefault(name, given[0])

    return hook


def _require_finite(done: Trace) -> None:
    for what, values in (("activations", done.activations), ("gradients", done.gradients)):
        for site, tensor in values.items():
            suspect = not tensor.sum().isfinite()  # one quick pass; finite numbers may still overflow their sum
            if suspect and not tensor.isfinite().all():
                raise DataError(f"{what} at {site} are not finite; the checkpoint or its dtype is broken")
