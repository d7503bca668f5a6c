"""``isotrace run``: Snakemake on a config, with one line a stage; its options and targets are passed through."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from isotrace.commands.registry import command, parser
from isotrace.errors import ConfigError
from isotrace.run import add_options, run, split_configs
from isotrace.study import read


@command(
    "run",
    help="run Snakemake on a config, one line a stage; its options and targets are passed through",
    options=add_options,
    examples=(
        "isotrace run --configfile mine.yaml",
        "isotrace run --configfile mine.yaml -n",
        "isotrace run tables figures --configfile mine.yaml --keep-going",
        "isotrace run --configfile mine.yaml --workflow-profile profiles/slurm",
    ),
    codes={1: "a job failed, or something of yours to fix; the last lines say which and what"},
    passes_on=True,
)
def _run(options: argparse.Namespace) -> int:
    if {"-h", "--help"} & set(options.arguments):
        parser(["run"]).parse_args(["run", "--help"])
    for config in configs(options.arguments):
        read(config)  # a mistake in the config is told before Snakemake starts
    return run(options.arguments)


def configs(arguments: Sequence[str]) -> list[Path]:
    """The config file that a command line names; none where it names several, which Snakemake merges first."""
    if list(arguments).count("--configfile") != 1:
        return []
    after = list(arguments)[list(arguments).index("--configfile") + 1 :]
    given = [a for i, a in enumerate(after) if not any(b.startswith("-") for b in after[: i + 1])]
    files = split_configs(given)[0]
    for file in map(Path, files):
        if not file.is_file():
            raise ConfigError(f"{file}: no such file; name the study's config after --configfile")
    return [Path(files[0])] if len(files) == 1 else []
