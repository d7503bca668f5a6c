"""Which checkpoints of a long series are taken: all, every n-th, evenly in the logarithm of the step, or named steps.

Our own choice; applied while a workflow is parsed, so that another choice needs no network.
"""

import math
from collections.abc import Sequence

from isotrace.errors import ConfigError
from isotrace.settings.sources import Revisions


def chosen(steps: Sequence[int], revisions: Revisions) -> list[int]:
    """Indices into ``steps`` (rising, repeats allowed) that a config takes; the first and the last are always kept.

    ConfigError for named steps that are not there, or if ``max`` leaves nothing.
    """
    take, most = revisions.take, revisions.max
    within = [i for i, step in enumerate(steps) if most is None or step <= most]
    if not within:
        raise ConfigError(f"max: {most} is below the first step {steps[0]}")
    if take.steps is not None:
        missing = sorted(set(take.steps) - {steps[i] for i in within})
        if missing:
            raise ConfigError(f"take.steps: {missing} are not among the steps {_shown([steps[i] for i in within])}")
        return [i for i in within if steps[i] in take.steps]
    if take.every is not None:
        return sorted({*within[:: take.every], within[-1]})
    return within if take.log is None else _spread([steps[i] for i in within], within, take.log)


def _spread(steps: list[int], indices: list[int], number: int) -> list[int]:
    """``number`` indices nearest to evenly spaced points of log(step); step 0, without a logarithm, is one of them."""
    zero = [i for step, i in zip(steps, indices, strict=True) if step == 0]
    free = {i: math.log(step) for step, i in zip(steps, indices, strict=True) if step > 0}
    wanted = number - len(zero)
    if wanted < 1 or len(free) <= wanted:
        return indices if len(free) <= wanted else zero
    first, last = min(free.values()), max(free.values())
    taken = [next(iter(free)), next(reversed(free))][-wanted:]
    for i in taken:
        del free[i]
    for k in range(1, wanted - 1):
        nearest = _nearest(free, first + (last - first) * k / (wanted - 1))
        taken.append(nearest)
        del free[nearest]
    return sorted([*zero, *taken])


def _nearest(free: dict[int, float], point: float) -> int:
    return min(free, key=lambda i: (abs(free[i] - point), i))


def _shown(steps: list[int]) -> str:
    return str(steps) if len(steps) <= 8 else f"[{', '.join(map(str, steps[:4]))}, …, {steps[-1]}] ({len(steps)})"
