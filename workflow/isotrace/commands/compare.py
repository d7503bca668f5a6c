"""``isotrace compare``: two finished studies side by side."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from isotrace.commands.registry import command
from isotrace.errors import ConfigError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace compare``."""
    add = parser.add_argument
    add("first", type=Path, help="config or results folder of one study")
    add("second", type=Path, help="config or results folder of the other")
    add("--model", nargs="+", default=[], metavar="FIRST=SECOND", help="models to compare that have two names")
    add("--rank", type=int, help="rank of the numbers (default: the first study's, if both have it)")
    add("--method", help="method of the bases (default: the first study's)")
    add("--format", choices=("text", "csv"), default="text", help="all as text, or the numbers as CSV (default text)")


@command(
    "compare",
    help="two finished studies side by side: main numbers, verdicts of claims, config keys",
    options=add_options,
    examples=(
        "isotrace compare mine.yaml other.yaml",
        "isotrace compare results/mine results/other --rank 8 --format csv",
        "isotrace compare mine.yaml results/other --model mine=theirs",
    ),
)
def _compare(options: argparse.Namespace) -> int:
    from isotrace.comparing import words
    from isotrace.comparing.sides import side

    first, second = side(options.first), side(options.second)
    models = words.matched(first, second, _named(options.model))
    rank = words.common_rank(first, second, options.rank)
    method = options.method or first.method
    if options.format == "csv":
        found = words.frame(first, second, models, rank, method)
        found.to_csv(sys.stdout, index=False, na_rep="NaN", lineterminator="\n")
    else:
        print(words.text(first, second, models, rank, method))
    return 0


def _named(given: Sequence[str]) -> dict[str, str]:
    for text in given:
        if not all(text.partition("=")):
            raise ConfigError(f"compare --model: {text!r} is not FIRST=SECOND")
    return {first: second for first, _, second in (text.partition("=") for text in given)}
