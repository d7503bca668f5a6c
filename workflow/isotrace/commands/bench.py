"""``isotrace bench``: measure one thing beside its baseline, as one line of JSON."""

import argparse
import json
from collections.abc import Sequence

from isotrace.commands.registry import command
from isotrace.errors import ConfigError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace bench``."""
    add = parser.add_argument
    add("name", nargs="?", help="which; without it they are listed")
    add("--size", nargs="+", default=[], metavar="NAME=N", help="sizes to use instead of the bench's own")
    add("--pairs", type=int, default=5, help="runs of either side, in turns (default 5)")
    add("--threads", type=int, default=1, help="threads of every library (default 1)")


@command(
    "bench",
    help="measure one thing beside its baseline, as one line of JSON",
    options=add_options,
    examples=("isotrace bench", "isotrace bench capture --pairs 3 --size width=256"),
)
def _bench(options: argparse.Namespace) -> int:
    from isotrace.bench.registry import benches, measured

    if options.name is None:
        for found in benches().values():
            sizes = " ".join(f"{key}={value}" for key, value in found.sizes.items())
            print(f"{found.name}: {found.compared}; wanted {found.wanted} (--size {sizes})")
        return 0
    line = measured(options.name, sizes=_sizes(options.size), threads=options.threads, pairs=options.pairs)
    print(json.dumps(line))
    return 0


def _sizes(given: Sequence[str]) -> dict[str, int]:
    for text in given:
        if not text.partition("=")[2].isdecimal():
            raise ConfigError(f"bench --size: {text!r} is not NAME=N with N a whole number")
    return {name: int(value) for name, _, value in (text.partition("=") for text in given)}
