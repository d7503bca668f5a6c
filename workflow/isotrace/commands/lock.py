"""``isotrace lock``: keep a finished study's digests, which ``locked: true`` then demands."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.study import validated
from isotrace.yamlfile import read_mapping


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace lock``."""
    add_configfile(parser, required=True)


@command(
    "lock",
    help="keep a finished study's digests, which `locked: true` then demands",
    options=add_options,
    examples=("isotrace lock --configfile mine.yaml",),
)
def _lock(options: argparse.Namespace) -> int:
    from isotrace.checkpoints.locked import keep_locks

    study = validated(read_mapping(options.configfile))
    for path in keep_locks(list(study.models), study.results):
        print(f"{path}: written; commit it")
    return 0
