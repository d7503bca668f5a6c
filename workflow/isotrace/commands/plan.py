"""``isotrace plan``: sizes, jobs, time and memory of a study, before anything runs."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.errors import ConfigError
from isotrace.study import read


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace plan``."""
    add_configfile(parser)
    parser.add_argument("--cores", type=int, help="cores to plan for; those of this machine unless given")


@command(
    "plan",
    help="sizes, jobs, time and memory of a study, before anything runs",
    options=add_options,
    examples=("isotrace plan --configfile mine.yaml", "isotrace plan --configfile mine.yaml --cores 64"),
)
def _plan(options: argparse.Namespace) -> int:
    from isotrace.planning.show import available_cores, show

    if options.cores is not None and options.cores < 1:
        raise ConfigError(f"plan --cores: {options.cores} is not 1 or more")
    study = read(options.configfile)
    print(show(study, study.results, cores=options.cores or available_cores()))
    return 0
