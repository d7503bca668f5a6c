"""The linear maps of a block that read the residual stream: attention input projections and the MLP's input.

Found from one pass by what they read, never by name; that these maps are the ones to ask about is our choice.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import Node, get_gradient_edge
from transformers.pytorch_utils import Conv1D

from isotrace.capture.inputs import forward_arguments
from isotrace.errors import DataError

SAME_NUMBERS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0", "ToCopyBackward0", "CloneBackward0")
"""Steps of a graph that change the shape, type or place of a tensor and nothing else."""


@dataclass(frozen=True)
class Maps:
    """Maps by "block.3:attention.query_key_value", in order of depth.

    reads[map] is the first map of its block that reads the same tensor (often itself), whose input stands for both.
    """

    modules: dict[str, nn.Module]
    reads: dict[str, str]


@dataclass
class _Seen:
    """What one block's parts were given in a pass, as nodes of the graph; ``norms`` from output to input."""

    stream: Node | None = None
    norms: dict[Node, Node] = field(default_factory=dict)
    inputs: dict[str, Node] = field(default_factory=dict)


def find_maps(model: nn.Module, sites: Mapping[str, nn.Module], blocks: Sequence[str]) -> Maps:
    """The maps of ``blocks`` (names in ``sites``) whose input is the stream, or a norm of it, at any point of a block.

    The stream is a block's input and every sum that has it as a term. Runs four tokens through the model. DataError
    naming a block in which no linear map reads the stream.
    """
    seen = {name: _Seen() for name in blocks}
    with _watched(sites, seen), torch.enable_grad():
        # An id that is not padding: some families would take it out of their position ids.
        ids = torch.full((1, 4), 1 if getattr(model.config, "pad_token_id", None) != 1 else 2)
        ids = ids.to(next(model.parameters()).device)
        model(**forward_arguments(model, ids, ids, None))
    modules: dict[str, nn.Module] = {}
    reads: dict[str, str] = {}
    for name, block in seen.items():
        first: dict[Node, str] = {}
        for part, node in block.inputs.items():
            if _is_stream(node, block):
                key = f"{name}:{part}"
                modules[key] = sites[name].get_submodule(part)
                reads[key] = first.setdefault(node, key)
        if not first:
            raise DataError(f"{type(model).__name__}: no linear map of {name} reads the residual stream")
    return Maps(modules, reads)


@contextmanager
def _watched(sites: Mapping[str, nn.Module], seen: Mapping[str, _Seen]) -> Iterator[None]:
    """Hooks that fill ``seen`` during a pass, and an embedding that starts a graph."""
    embedding = next(iter(sites.values()))
    handles = [embedding.register_forward_hook(lambda _m, _i, output: output.requires_grad_())]
    for name, block in seen.items():
        handles.append(sites[name].register_forward_pre_hook(_enter(block), with_kwargs=True))
        for part, module in sites[name].named_modules():
            if isinstance(module, nn.Linear | Conv1D):
                handles.append(module.register_forward_pre_hook(_read(block, part)))
            elif "norm" in type(module).__name__.lower():
                handles.append(module.register_forward_hook(_normed(block)))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _enter(block: _Seen) -> Any:
    def hook(_module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        block.stream = _node(given[0] if given else named["hidden_states"])

    return hook


def _read(block: _Seen, part: str) -> Any:
    def hook(_module: nn.Module, given: tuple[Tensor, ...]) -> None:
        if given[0].requires_grad:  # positions that a map embeds do not come from the stream
            block.inputs.setdefault(part, _node(given[0]))

    return hook


def _normed(block: _Seen) -> Any:
    def hook(_module: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> None:
        if output.requires_grad:
            block.norms[_node(output)] = _node(given[0])

    return hook


def _node(tensor: Tensor) -> Node:
    """What made a tensor, beneath changes of shape or type only."""
    node = get_gradient_edge(tensor).node
    while node.name() in SAME_NUMBERS and node.next_functions[0][0] is not None:
        node = node.next_functions[0][0]
    return node


def _is_stream(node: Node | None, block: _Seen) -> bool:
    """Whether a node is the block's input, a norm of the stream, or a sum with the stream as a term."""
    while node is not None and node.name() in SAME_NUMBERS:
        node = node.next_functions[0][0]
    if node is None or node is block.stream:
        return node is not None
    if node in block.norms:
        return _is_stream(block.norms[node], block)
    return node.name() == "AddBackward0" and any(_is_stream(term, block) for term, _ in node.next_functions)
