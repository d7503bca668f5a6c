"""``isotrace check``: the rows of a study's cards, and an exit code for a team's CI."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.study import read


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace check``."""
    add_configfile(parser)
    parser.add_argument("--model", help="one model, or group of runs; all unless given")


@command(
    "check",
    help="the card's rows; exit code 1 where one is at alarm, for a CI",
    options=add_options,
    examples=("isotrace check --configfile mine.yaml", "isotrace check --configfile mine.yaml --model mine"),
    codes={
        0: "no measure is at alarm",
        1: "a measure is at alarm, nothing could be judged, or something of yours to fix (one line on stderr)",
    },
)
def _check(options: argparse.Namespace) -> int:
    from isotrace.checkview import check

    return check(read(options.configfile), options.configfile, options.model)
