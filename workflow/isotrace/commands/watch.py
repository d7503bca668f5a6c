"""``isotrace watch``: analyse a running training's checkpoints as they appear."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.study import read, validated
from isotrace.yamlfile import read_mapping


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace watch``."""
    add_configfile(parser, required=True)
    parser.add_argument("--cores", default="all", help="how many cores jobs may use (default all)")
    parser.add_argument("--every", type=float, default=60, help="seconds between looks (default 60)")
    parser.add_argument("--until", type=int, help="stop once a checkpoint at this step was analysed")


@command(
    "watch",
    help="analyse a running training's checkpoints as they appear; its config names total_steps",
    options=add_options,
    examples=(
        "isotrace watch --configfile mine.yaml",
        "isotrace watch --configfile mine.yaml --cores 4 --every 300 --until 100000",
    ),
    codes={1: "the last round failed, or something of yours to fix; one line on stderr says what"},
)
def _watch(options: argparse.Namespace) -> int:
    from isotrace.run import run
    from isotrace.watch import watch

    return watch(
        validated(read_mapping(options.configfile)),
        lambda: read(options.configfile),
        lambda: run(["--configfile", str(options.configfile), "--cores", options.cores]),
        every=options.every,
        until=options.until,
        tell=lambda line: print(line, flush=True),
    )
