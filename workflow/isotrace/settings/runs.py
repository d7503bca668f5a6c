"""Runs that differ in their seed alone: ``models.NAME.seeds`` becomes the models NAME-seed0, NAME-seed1 and so on.

Our choice: a run is a model like any other, and its group is a name that tests, claims and figures may use.
"""

from collections.abc import Mapping
from typing import Any, get_args

from isotrace.errors import ConfigError
from isotrace.settings.base import Block
from isotrace.settings.inputs import Model, Objective
from isotrace.settings.sources import Init, Training

SEED = "{seed}"
POOLED = (*get_args(Objective), "all")
"""Names under which runs are pooled already, so that no group of runs may take one."""


def expanded(models: Mapping[str, Model]) -> tuple[dict[str, Model], dict[str, str]]:
    """Every run as a model by its name, and the group of each run that ``seeds`` made.

    ConfigError, naming the key, for a name that two models would have, a group called as a pool of runs is, a place
    without ``{seed}``, and ``{seed}`` without ``seeds``.
    """
    found: dict[str, Model] = {}
    groups: dict[str, str] = {}
    for name, model in models.items():
        place = _place(name, model)
        if model.seeds is None:
            if SEED in place:
                raise ConfigError(
                    f"models.{name}.seeds: missing, and {place!r} has {SEED}; list the seeds, e.g. [0, 1]"
                )
            found[name] = _add(name, model, found)
            continue
        if name in POOLED:
            raise ConfigError(f"models.{name}.seeds: {name!r} names all runs of a kind; give this group another name")
        for seed in model.seeds:
            run = f"{name}-seed{seed}"
            found[run] = _add(run, _run(model, seed), found)
            groups[run] = name
    taken = sorted(set(groups.values()) & set(found))
    if taken:
        raise ConfigError(f"models.{taken[0]}.seeds: a run of another model has that name too; rename one of them")
    return found, groups


def _add(name: str, model: Model, found: Mapping[str, Model]) -> Model:
    if name in found:
        raise ConfigError(f"models.{name}: the name of two models, one of them a run that `seeds` makes; rename one")
    return model


def _place(name: str, model: Model) -> str:
    """Where stored checkpoints are; it tells the runs apart. Empty for those made here."""
    source, where = model.source, f"models.{name}"
    if isinstance(source, Init) and model.seeds is not None:
        raise ConfigError(f"{where}.seeds: untrained models list theirs in {where}.source.seeds; move them there")
    if isinstance(source, Training | Init):
        return ""
    key = "repo" if hasattr(source, "repo") else "path"
    place = str(getattr(source, key))
    if model.seeds is not None and SEED not in place:
        raise ConfigError(
            f"{where}.source.{key}: {place!r} is the same for all seeds {model.seeds}; write {SEED} where they differ"
        )
    return place


def _run(model: Model, seed: int) -> Model:
    return model.model_copy(update={"seed": seed, "seeds": None, "source": _filled(model.source, seed)})


def _filled(block: Block, seed: int) -> Block:
    """The block with ``{seed}`` filled in, wherever one of its texts has it."""
    values: dict[str, Any] = {}
    for name in type(block).model_fields:
        value = getattr(block, name)
        if isinstance(value, str):
            values[name] = value.replace(SEED, str(seed))
        if isinstance(value, Block):
            values[name] = _filled(value, seed)
    return block.model_copy(update=values)
