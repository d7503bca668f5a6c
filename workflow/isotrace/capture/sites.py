"""Where activations are read: input embedding, every block of the residual stream, final norm.

Found by what they do in one pass over a few ids: a block reads what the block before it gave (our choice).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from isotrace.capture.inputs import forward_arguments, is_encoder_decoder
from isotrace.corpus.sample import IGNORED
from isotrace.errors import ConfigError, DataError

MOST_BLOCKS_WITH_ALL = 8
SPREAD = 5
PROBE = (2, 3)
"""Sequences and positions of the probing pass; unlike, so that a stream laid out (T, b, d) is seen."""


def find_sites(model: nn.Module, declared: Mapping[str, str | None] | None = None) -> dict[str, nn.Module]:
    """Every site of a model in order of depth: embed, block.0 ... block.{L-1}, final_norm where there is one.

    ``declared`` gives the paths of ``embed``, ``blocks`` and perhaps ``final_norm`` (config key
    ``models.NAME.modules``) for a family that has no one such list. An encoder-decoder's sites are its encoder's.
    DataError names a family that does not fit; ConfigError a declared path that is not there.
    """
    if declared is not None:
        return _declared(model, declared)
    probe = _probe(model)
    lists = [blocks for name, blocks in probe.lists.items() if probe.is_stream(name)]
    if len(lists) != 1:
        raise _unfit(model, f"found {len(lists)} lists of blocks that read one another's output, one is needed")
    if probe.embedding is None or len(probe.of(probe.embedding)) != 1:
        raise _unfit(model, "no input embedding that runs once")
    return _named(probe.embedding, lists[0], probe.norm_after(lists[0][-1]))


def find_streams(model: nn.Module, run: Callable[[], object]) -> dict[str, nn.Module]:
    """The sites of a model that reads images or sound, from ``run``, a pass over two inputs of it; as `find_sites`.

    ``embed`` is what the first block *reads*, patches or features with all that is added to them, so that every site
    has the same positions; its module is that block. DataError for a model that does not fit.
    """
    probe = _probe(model, run)
    lists = [blocks for name, blocks in probe.lists.items() if probe.is_stream(name)]
    if len(lists) != 1:
        raise DataError(
            f"{type(model).__name__}: found {len(lists)} lists of blocks that read one another's output at the same "
            f"positions, one is needed; models that merge patches between blocks have none"
        )
    return _named(lists[0][0], lists[0], probe.norm_after(lists[0][-1]))


def _unfit(model: nn.Module, what: str) -> DataError:
    return DataError(
        f"{type(model).__name__}: {what}; declare the sites of this family in the config, "
        'models.NAME.modules: {embed: "transformer.wte", blocks: "transformer.h", final_norm: "transformer.ln_f"}'
    )


def choose(names: list[str], wanted: list[str] | None) -> list[str]:
    """The sites to keep: those wanted, or all of a shallow model, or some spread over depth."""
    if wanted is not None:
        unknown = sorted(set(wanted) - set(names))
        if unknown:
            raise ConfigError(f"capture.sites: {unknown} not among {names}")
        return [name for name in names if name in wanted]
    blocks = [name for name in names if name.startswith("block.")]
    if len(blocks) <= MOST_BLOCKS_WITH_ALL:
        return names
    kept = {blocks[round(i * (len(blocks) - 1) / SPREAD)] for i in range(SPREAD)} | {blocks[-1], "final_norm", "embed"}
    return [name for name in names if name in kept]


def width(model: nn.Module, sites: Mapping[str, nn.Module]) -> int:
    """The width d of what all sites put out; DataError where they differ, since a store has one width."""
    widths: dict[str, int] = {}

    def note(name: str) -> Any:
        def hook(_module: nn.Module, _given: Any, output: Any) -> None:
            stream = returned(output)
            widths[name] = 0 if stream is None else stream.shape[-1]

        return hook

    handles = [module.register_forward_hook(note(name)) for name, module in sites.items()]
    try:
        _run(model)
    finally:
        for handle in handles:
            handle.remove()
    *others, last = widths.items()
    odd = next((item for item in others if item[1] != last[1]), None)
    if odd is not None:
        raise DataError(
            f"{type(model).__name__}: site {odd[0]} has width {odd[1]}, {last[0]} has {last[1]}; name sites of one "
            f"width in capture.sites"
        )
    return last[1]


def read(given: tuple[Any, ...], named: Mapping[str, Any]) -> Tensor | None:
    """The tensor that a module reads first, by position or as ``hidden_states``."""
    return returned(given) if given else returned(named.get("hidden_states"))


def returned(value: Any) -> Tensor | None:
    """The residual stream in what a module gave back: a bare tensor, or the first of several, by family."""
    first = value[0] if isinstance(value, tuple | list) and value else value
    return first if isinstance(first, Tensor) else None


def _named(embedding: nn.Module, blocks: nn.ModuleList | nn.Sequential, norm: nn.Module | None) -> dict[str, nn.Module]:
    sites = {"embed": embedding} | {f"block.{i}": block for i, block in enumerate(blocks)}
    return sites if norm is None else sites | {"final_norm": norm}


def _declared(model: nn.Module, declared: Mapping[str, str | None]) -> dict[str, nn.Module]:
    modules = dict(model.named_modules())
    for key, path in declared.items():
        if path is not None and path not in modules:
            raise ConfigError(f"modules.{key}: {path!r} is no module of {type(model).__name__}")
    blocks = modules[str(declared["blocks"])]
    if not isinstance(blocks, nn.ModuleList | nn.Sequential) or not len(blocks):
        raise ConfigError(f"modules.blocks: {declared['blocks']!r} is a {type(blocks).__name__}, no list of modules")
    norm = declared.get("final_norm")
    return _named(modules[str(declared["embed"])], blocks, None if norm is None else modules[norm])


@dataclass
class _Probe:
    """Lists of modules of a model's stack, its embedding, and what every module read and returned.

    lead: the leading axes of a stream, None for any positions of two inputs.
    """

    lists: dict[str, nn.ModuleList]
    norms: list[nn.Module]
    embedding: nn.Module | None
    lead: tuple[int, ...] | None = PROBE
    calls: list[tuple[nn.Module, Tensor | None, Tensor | None]] = field(default_factory=list)

    def of(self, module: nn.Module) -> list[tuple[Tensor | None, Tensor | None]]:
        return [(given, output) for called, given, output in self.calls if called is module]

    def is_stream(self, name: str) -> bool:
        """Whether every module of a list ran once and read what the one before returned, (b, T, d)."""
        runs = [self.of(module) for module in self.lists[name]]
        shapes = {() if len(run) != 1 or run[0][1] is None else tuple(run[0][1].shape) for run in runs}
        if not all(self._is_lead(shape[:-1]) for shape in shapes) or (self.lead is None and self._changes(runs)):
            return False
        return all(_same(after[0][0], before[0][1]) for before, after in pairwise(runs))

    def _is_lead(self, axes: tuple[int, ...]) -> bool:
        return axes == self.lead if self.lead is not None else len(axes) == 2 and axes[0] == PROBE[0]

    @staticmethod
    def _changes(runs: list[list[tuple[Tensor | None, Tensor | None]]]) -> bool:
        """Whether positions or width change on the way through blocks, or cannot be seen."""
        return len({() if stream is None else tuple(stream.shape) for [pair] in runs for stream in pair}) > 1

    def norm_after(self, block: nn.Module) -> nn.Module | None:
        """The norm that reads a block's output; a norm inside a block, or over the embedding, does not."""
        [(_, last)] = self.of(block)
        return next((norm for norm in self.norms for given, _ in self.of(norm) if _same(given, last)), None)


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    """Whether two tensors, both still alive, are one."""
    return a is not None and b is not None and a.data_ptr() == b.data_ptr() and a.shape == b.shape


def _probe(model: nn.Module, run: Callable[[], object] | None = None) -> _Probe:
    """Run a few ids, or ``run``, and note what goes into and comes out of every module of a list, and every norm."""
    by_ids = run is None
    stack = model.get_encoder() if by_ids and is_encoder_decoder(model) else model  # type: ignore[operator]
    lists = {name: m for name, m in stack.named_modules() if isinstance(m, nn.ModuleList) and len(m)}
    outer = {name: m for name, m in lists.items() if not any(name.startswith(f"{other}.") for other in lists)}
    inside = {inner for blocks in outer.values() for inner in blocks.modules()}
    norms = [m for m in stack.modules() if "norm" in type(m).__name__.lower() and m not in inside]
    probe = _Probe(outer, norms, _embedding(stack) if by_ids else None, PROBE if by_ids else None)

    def note(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> None:
        probe.calls.append((module, read(given, named), returned(output)))

    watched = [module for blocks in outer.values() for module in blocks] + norms
    watched += [] if probe.embedding is None else [probe.embedding]
    handles = [module.register_forward_hook(note, with_kwargs=True) for module in watched]
    try:
        if outer:
            _run(model) if run is None else run()
    finally:
        for handle in handles:
            handle.remove()
    return probe


def _run(model: nn.Module) -> None:
    device = next(model.parameters()).device
    ids = 1 + torch.arange(PROBE[0] * PROBE[1], device=device).view(PROBE)
    try:
        with torch.no_grad():
            model(**forward_arguments(model, ids, torch.full_like(ids, IGNORED)))
    except Exception as error:  # a family that takes more than ids fails in its own way
        line = next(iter(str(error).splitlines()), type(error).__name__)
        raise _unfit(model, f"cannot run on token ids alone ({line})") from error


def _embedding(stack: nn.Module) -> nn.Module | None:
    """The input embedding as the stack calls it; an encoder's may be another module than the model's."""
    try:
        found: nn.Module | None = stack.get_input_embeddings()  # type: ignore[operator]
    except (AttributeError, NotImplementedError):
        return None
    return found
