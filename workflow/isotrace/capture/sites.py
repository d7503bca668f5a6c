"""Where activations are read: input embedding, every block of the residual stream, final norm.

Blocks are hooked as modules: ``hidden_states[-1]`` of transformers is after the final norm, not the last block.
"""

from torch import nn

from isotrace.errors import ConfigError, DataError

MOST_BLOCKS_WITH_ALL = 8
SPREAD = 5


def find_sites(model: nn.Module) -> dict[str, nn.Module]:
    """Every site of a model in order of depth: embed, block.0 ... block.{L-1}, final_norm where there is one.

    DataError names a family whose blocks are not one list of modules.
    """
    blocks = _blocks(model)
    sites = {"embed": model.get_input_embeddings()}  # type: ignore[operator]
    sites |= {f"block.{i}": block for i, block in enumerate(blocks)}
    norm = _final_norm(model, blocks)
    return sites if norm is None else sites | {"final_norm": norm}


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


def _blocks(model: nn.Module) -> nn.ModuleList:
    """The one list of modules whose class the family records as hidden states."""
    recorded = [getattr(m, "_can_record_outputs", None) or {} for m in model.modules()]
    classes = tuple({r["hidden_states"] for r in recorded if isinstance(r.get("hidden_states"), type)})
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList) and len(m) and isinstance(m[0], classes)]
    if len(lists) != 1:
        raise DataError(f"{type(model).__name__}: found {len(lists)} lists of blocks, one is needed; family not known")
    return lists[0]


def _final_norm(model: nn.Module, blocks: nn.ModuleList) -> nn.Module | None:
    """The norm beside the list of blocks, declared after it: what the stack's output passes through."""
    owner = next(m for m in model.modules() if any(child is blocks for child in m.children()))
    children = list(owner.children())
    after = children[next(i for i, child in enumerate(children) if child is blocks) + 1 :]
    norms = [child for child in after if "norm" in type(child).__name__.lower()]
    return norms[-1] if norms else None
