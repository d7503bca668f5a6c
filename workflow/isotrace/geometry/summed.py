"""What energies are made from where rows were summed as they passed by and not kept.

Apart from the arithmetic, so that readers of stores, and the bases and captures that use them, do not depend on it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from isotrace.geometry.moments import Moments
from isotrace.geometry.rows import Quantity


@dataclass(frozen=True)
class BucketMoments:
    """Every token of one bucket, one split.

    whole and groups give, for a site and quantity, the moments of all rows and those of each group of sequences,
    read when they are asked for: those of every site at once can be larger than memory.
    """

    name: str
    sites: tuple[str, ...]
    whole: Callable[[str, Quantity], Moments]
    groups: Callable[[str, Quantity], Iterator[Moments]]


@dataclass(frozen=True)
class MapMoments:
    """One linear map in one bucket, evaluation split.

    gradient: moments of the d_out rows of its weight gradient; inputs: moments of what it read; tokens: how many
    tokens the gradient sums.
    """

    gradient: Moments
    inputs: Moments
    tokens: int
