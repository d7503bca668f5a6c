"""Which benches exist: a decorator that registers a measurement under the name that ``isotrace bench`` takes.

Our choice: every bench returns one ratio to a baseline that runs in the same process.
"""

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from threadpoolctl import threadpool_limits

import isotrace.bench
from isotrace.errors import ConfigError

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Settings:
    """What one measurement is to do: ``sizes`` by name, ``threads`` of every library, ``pairs`` of runs."""

    sizes: Sizes
    threads: int
    pairs: int


@dataclass(frozen=True)
class Measured:
    """The ratio and whatever else the line should say, of types that JSON has."""

    ratio: float
    details: Mapping[str, Any] = field(default_factory=dict)


Measure = Callable[[Settings], Measured]


@dataclass(frozen=True)
class Bench:
    """One bench: what its ratio compares, the bound it should keep, its sizes unless others are given."""

    name: str
    compared: str
    wanted: str
    sizes: Sizes
    measure: Measure


_BENCHES: dict[str, Bench] = {}


def bench(name: str, *, compared: str, wanted: str, sizes: Sizes) -> Callable[[Measure], Measure]:
    """Register ``measure(settings) -> Measured`` as the bench called ``name``, in any module of isotrace/bench."""

    def register(measure: Measure) -> Measure:
        _BENCHES[name] = Bench(name, compared, wanted, dict(sizes), measure)
        return measure

    return register


def benches() -> dict[str, Bench]:
    """Every bench by name; modules of the package are imported for what they register."""
    for module in pkgutil.iter_modules(isotrace.bench.__path__):
        import_module(f"isotrace.bench.{module.name}")
    return dict(sorted(_BENCHES.items()))


def measured(name: str, *, sizes: Sizes, threads: int, pairs: int) -> dict[str, Any]:
    """Run one bench and return the line to print, a plain dict.

    ``sizes`` replace the bench's own by name. ConfigError for an unknown bench or size, or a number below 1.
    """
    known = benches()
    if name not in known:
        raise ConfigError(f"bench: {name!r} is not one of {', '.join(known)}")
    found = known[name]
    for key in sizes:
        if key not in found.sizes:
            raise ConfigError(f"bench {name} --size: {key!r} is not one of {', '.join(found.sizes)}")
    for key, value in {**sizes, "threads": threads, "pairs": pairs}.items():
        if value < 1:
            raise ConfigError(f"bench {name}: {key} is {value}, the least is 1")
    settings = Settings({**found.sizes, **sizes}, threads, pairs)
    with threadpool_limits(limits=threads):
        result = found.measure(settings)
    return {
        "bench": name,
        "ratio": result.ratio,
        "wanted": found.wanted,
        "compared": found.compared,
        "sizes": dict(settings.sizes),
        "threads": threads,
        "pairs": pairs,
        **result.details,
    }
