"""``isotrace resolve``: ask the hub for a series' commits and hashes, once."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.study import validated
from isotrace.yamlfile import read_mapping


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace resolve``."""
    parser.add_argument("model", help="name of a model of the config whose source is hub")
    add_configfile(parser, required=True)


@command(
    "resolve",
    help="ask the hub for a series' commits and hashes, once",
    options=add_options,
    examples=("isotrace resolve mine --configfile mine.yaml",),
)
def _resolve(options: argparse.Namespace) -> int:
    from isotrace.hub.write import write_series

    print(write_series(options.model, validated(read_mapping(options.configfile))))
    return 0
