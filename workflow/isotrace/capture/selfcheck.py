"""Whether activations and gradients as captured are those of this very model, tested on its first sequences.

Compared with plain hooks on what the next block reads, and autograd on the model's own full logits (our choice).
"""

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.capture.inputs import forward_arguments, is_encoder_decoder
from isotrace.capture.sites import read, returned
from isotrace.capture.trace import Trace, trace
from isotrace.corpus.sample import IGNORED
from isotrace.errors import DataError

ALLOWED = {torch.float32: 1e-5, torch.bfloat16: 2e-2}
"""Norm of a difference over the norm of what is expected, by compute dtype.

Single entries of bfloat16 gradients differ more between two equally good orders of summation in a deep model.
"""
MOST_POSITIONS = 64
"""Positions of a sequence that are run: here all logits are held, of whatever vocabulary."""


@dataclass
class _Observed:
    """One pass of the model itself: what each site read, what it put out, its loss and logits."""

    inputs: dict[str, Tensor] = field(default_factory=dict)
    outputs: dict[str, Tensor] = field(default_factory=dict)
    hidden: tuple[Tensor, ...] | None = None
    losses: Tensor = field(default_factory=lambda: torch.empty(0))
    gradients: dict[str, Tensor] = field(default_factory=dict)


def self_check(
    model: nn.Module, sites: Mapping[str, nn.Module], input_ids: Tensor, targets: Tensor
) -> dict[str, float]:
    """Largest relative difference by check; input_ids, targets (b, T) of unpadded sequences, every site of the model.

    inputs: the embedding reads the ids; a block, and the final norm, reads what was captured at the block before.
    hidden_states: as many blocks, with the same output, as transformers' own, where the model gives them. losses,
    gradients: those of the summed cross-entropy of the model's logits. DataError names check and site above what
    the dtype allows (`ALLOWED`).
    """
    ids, wanted = input_ids[:, :MOST_POSITIONS], targets[:, :MOST_POSITIONS]
    if bool((wanted == IGNORED).all()):
        raise DataError("self-check: the first sequences have no target, so there is no gradient to compare")
    captured, own = trace(model, sites, ids, wanted), _observe(model, sites, ids, wanted)
    allowed = ALLOWED[next(model.parameters()).dtype]
    worst: dict[str, float] = {}
    for check, site, found, expected in _pairs(captured, own, list(sites), ids):
        difference = _relative(found, expected)
        if not difference <= allowed:
            raise DataError(
                f"self-check of {type(model).__name__}: {check} at {site} differ by {difference:.2g} of their norm, "
                f"{allowed:g} is allowed; what would be captured is not what this model computes"
            )
        worst[check] = max(worst.get(check, 0.0), difference)
    return worst


def _pairs(
    captured: Trace, own: _Observed, sites: list[str], ids: Tensor
) -> Iterator[tuple[str, str, Tensor | None, Tensor | None]]:
    """(check, site, what was captured, what it should be)."""
    blocks = [site for site in sites if site.startswith("block.")]
    yield "inputs", "embed", own.inputs.get("embed"), ids
    for before, after in pairwise(site for site in sites if site != "embed"):
        yield "inputs", after, captured.activations[before], own.inputs.get(after)
    if own.hidden is not None:
        yield "hidden_states", "the number of blocks", torch.tensor(len(blocks) + 1), torch.tensor(len(own.hidden))
        # Most families start with what block 0 reads, some (Mamba) with what it gives; the last may be normed.
        outputs = own.hidden[1:] if _relative(own.inputs.get(blocks[0]), own.hidden[0]) == 0 else own.hidden
        for site, hidden in zip(blocks[:-1], outputs, strict=False):
            yield "hidden_states", site, captured.activations[site], hidden
    yield "losses", "the output", captured.losses.nan_to_num(), own.losses.nan_to_num()
    for site in sites:
        yield "gradients", site, captured.gradients[site], own.gradients[site]


def _relative(found: Tensor | None, expected: Tensor | None) -> float:
    """Norm of the difference over the norm of what is expected; infinite where there is nothing to compare."""
    if found is None or expected is None or found.shape != expected.shape:
        return float("inf")
    found, expected = found.detach().double(), expected.detach().double()
    difference = (found - expected).norm()
    return float(difference / expected.norm()) if difference > 0 else 0.0


def _observe(model: nn.Module, sites: Mapping[str, nn.Module], ids: Tensor, targets: Tensor) -> _Observed:
    """Run the model with its own head and differentiate the summed cross-entropy by every site's output."""
    seen = _Observed()
    handles = [module.register_forward_hook(_note(seen, name), with_kwargs=True) for name, module in sites.items()]
    arguments = forward_arguments(model, ids, targets)
    if _gives_hidden_states(model):
        arguments["output_hidden_states"] = True
    try:
        output = model(**arguments)
    finally:
        for handle in handles:
            handle.remove()
    seen.hidden = getattr(output, "encoder_hidden_states" if is_encoder_decoder(model) else "hidden_states", None)
    # In float64: at some 50,000 entries a float32 softmax is off by more than what is allowed here.
    logits = output.logits.double().flatten(0, 1)  # (b, T, V) -> (b*T, V)
    losses = nn.functional.cross_entropy(logits, targets.flatten(), ignore_index=IGNORED, reduction="none")
    gradients = torch.autograd.grad(losses.sum(), [seen.outputs[name] for name in sites])
    seen.gradients = dict(zip(sites, gradients, strict=True))
    seen.losses = losses.detach().view(targets.shape)
    return seen


def _note(seen: _Observed, name: str):  # type: ignore[no-untyped-def]
    def hook(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        value, tensor = read(given, named), returned(output)
        if value is not None:
            seen.inputs[name] = value.detach()
        if tensor is not None:
            seen.outputs[name] = tensor if tensor.requires_grad else tensor.requires_grad_()

    return hook


def _gives_hidden_states(model: nn.Module) -> bool:
    parameters = inspect.signature(model.forward).parameters
    return "output_hidden_states" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
