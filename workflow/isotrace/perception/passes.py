"""One pass of a model over images or clips: what its sites hold, and the gradient of its own classification.

The loss is the cross-entropy of the head against the class it itself finds likeliest, summed (our choice: no labels).
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

NO_HEAD = "the model has no head to differentiate"
EMBED = "embed"


def classifies(model: nn.Module) -> bool:
    """Whether a model ends in a classification head, whose loss can be differentiated."""
    return "Classification" in type(model).__name__


def forward(model: Any, name: str, values: Tensor) -> Tensor | None:
    """The logits of a model that classifies; of any other nothing, and of an encoder-decoder the encoder alone."""
    given = {name: values}
    if classifies(model):
        logits: Tensor = model(**given).logits
        return logits
    (model.get_encoder() if is_encoder_decoder(model) else model.base_model)(**given)
    return None


def streams(model: nn.Module, name: str, values: Tensor) -> dict[str, nn.Module]:
    """Every site by its module (of ``embed`` the module that reads it), from a pass over two inputs (2, ...)."""

    if name == "input_ids":
        return character_streams(model)

    def run() -> None:
        with torch.no_grad():
            forward(model, name, values[:2])

    return find_streams(model, run)


def traced(
    model: nn.Module, sites: Mapping[str, nn.Module], name: str, values: Tensor
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Activations and gradients by site, each (b, T, d) float32; no gradients where there is no head.

    The loss of one input does not depend on the others, so neither do its gradients. A site that the loss does not
    depend on has gradients of zero. DataError when a value is not finite.
    """
    with _recorded(sites, gradients=classifies(model)) as found, torch.set_grad_enabled(classifies(model)):
        logits = forward(model, name, values)
    activations = {site: found[site].detach().float() for site in sites}
    gradients: dict[str, Tensor] = {}
    if logits is not None:
        flat = logits.flatten(0, -2).float()
        loss = nn.functional.cross_entropy(flat, flat.detach().argmax(dim=-1), reduction="sum")
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
