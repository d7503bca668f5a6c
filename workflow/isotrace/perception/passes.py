"""One pass of a model over images or clips: what its sites hold, and the gradients of what its head is asked.

Without a head that can be differentiated there are activations alone; what heads are asked is our choice, ``heads``.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.capture.inputs import is_encoder_decoder
from isotrace.capture.sites import find_streams, read, returned
from isotrace.errors import DataError
from isotrace.perception.characters import character_streams
from isotrace.perception.heads import Given, head_of
from isotrace.perception.masks import Hidden

NO_HEAD = "the model has no head to differentiate"
EMBED = "embed"


def forward(model: Any, name: str, values: Tensor, given: Given | None = None) -> Any:
    """What a model with a head gives out; without one what its base does, or the encoder of an encoder-decoder."""
    if head_of(model) is not None:
        return model(**{name: values}, **(given or {}))
    return (model.get_encoder() if is_encoder_decoder(model) else model.base_model)(**{name: values})


def asked(model: nn.Module, hidden: Hidden | None, device: torch.device) -> Given:
    """What a head is given beside the pieces: what is hidden from it, if it fills in."""
    head = head_of(model)
    given = {} if head is None or hidden is None else head.given(hidden)
    return {argument: tensor.to(device) for argument, tensor in given.items()}


def streams(model: nn.Module, name: str, values: Tensor) -> dict[str, nn.Module]:
    """Every site by its module (of ``embed`` the module that reads it), from a pass over two inputs (2, ...)."""

    if name == "input_ids":
        return character_streams(model)

    def run() -> None:
        with torch.no_grad():
            forward(model, name, values[:2])

    return find_streams(model, run)


def shape_of(model: nn.Module, sites: Mapping[str, nn.Module], name: str, values: Tensor) -> tuple[int, int]:
    """Positions and width of the stream."""
    with _recorded(sites, gradients=False) as found, torch.no_grad():
        forward(model, name, values)
    _, positions, d = next(iter(found.values())).shape
    return positions, d


def traced(
    model: nn.Module, sites: Mapping[str, nn.Module], name: str, values: Tensor, hidden: Hidden | None = None
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Activations and gradients by site, each (b, T, d) float32; no gradients where there is no head.

    hidden: what is hidden from a head that fills in. The loss of one input does not depend on the others, so neither
    do its gradients. A site that the loss does not depend on has gradients of zero. DataError when a value is not
    finite.
    """
    head = head_of(model)
    given = asked(model, hidden, values.device)
    with _recorded(sites, gradients=head is not None) as found, torch.set_grad_enabled(head is not None):
        output = forward(model, name, values, given)
    activations = {site: found[site].detach().float() for site in sites}
    gradients: dict[str, Tensor] = {}
    if head is not None:
        loss = head.loss(output, values, given)
        made = torch.autograd.grad(loss, [found[site] for site in sites], allow_unused=True, materialize_grads=True)
        gradients = {site: g.float() for site, g in zip(sites, made, strict=True)}
    for what, by_site in (("activations", activations), ("gradients", gradients)):
        for site, tensor in by_site.items():
            if not tensor.isfinite().all():
                raise DataError(f"{what} at {site} are not finite; the checkpoint or its dtype is broken")
    return activations, gradients


@contextmanager
def _recorded(sites: Mapping[str, nn.Module], *, gradients: bool) -> Iterator[dict[str, Tensor]]:
    """Collect what every site holds in a pass, made to require a gradient where one is wanted."""
    found: dict[str, Tensor] = {}

    def keep(site: str, tensor: Tensor | None) -> None:
        assert tensor is not None
        if gradients and not tensor.requires_grad:
            tensor.requires_grad_()
        found.setdefault(site, tensor)

    def before(site: str) -> Callable[..., None]:
        return lambda _module, given, named: keep(site, read(given, named))

    def after(site: str) -> Callable[..., None]:
        return lambda _module, _given, output: keep(site, returned(output))

    handles = [
        module.register_forward_pre_hook(before(site), with_kwargs=True)
        if site == EMBED
        else module.register_forward_hook(after(site))
        for site, module in sites.items()
    ]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()
