"""``isotrace show``: what a study holds, a table with filters, or a figure's files and caption."""

import argparse
import sys
from pathlib import Path

from isotrace.commands.registry import add_configfile, command
from isotrace.errors import ConfigError


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace show``."""
    add = parser.add_argument
    add("name", nargs="?", help="a table or figure (tables/toy, figures/toy); without it they are listed")
    add_configfile(parser)
    add("--results", type=Path, help="the results folder, instead of that of a config")
    add("--where", action="append", default=[], metavar="FILTER", help="COLUMN=VALUE,VALUE; also !=, <, <=, >, >=")
    add("--columns", type=lambda text: text.split(","), default=[], help="columns to show, divided by commas")
    add("--format", choices=("text", "csv"), default="text", help="aligned columns, or CSV (default text)")
    add("--limit", type=int, default=40, help="rows of text at most, 0 for all (default 40)")
    add("--about", action="store_true", help="the columns of the table and their units, instead of its rows")


@command(
    "show",
    help="what a finished study holds: a table with filters, or a figure's files and caption",
    options=add_options,
    examples=(
        "isotrace show",
        "isotrace show energy --where site=final_norm --where 'step>=64' --columns step,bucket,ratio",
        "isotrace show claims --results results/mine --format csv",
        "isotrace show energy --about",
        "isotrace show figures/energy_over_training",
    ),
)
def _show(options: argparse.Namespace) -> int:
    from isotrace import showing, tables

    if options.about:
        if options.name is None:
            raise ConfigError("show --about: name a table")
        print(showing.about(options.name.rpartition("/")[2]))
        return 0
    results = options.results or _results(options.configfile)
    if options.name is None:
        print("\n".join(showing.listing(results)))
        return 0
    kind, name = showing.kind_of(results, options.name)
    if kind == "figures":
        print(showing.figure(results, name))
        return 0
    found = showing.rows(tables.read(results / "tables" / f"{name}.parquet"), options.where, options.columns)
    if options.format == "csv":
        found.to_csv(sys.stdout, index=False, na_rep="NaN", lineterminator="\n")
    else:
        print(showing.text(found, options.limit) if len(found) else "no such rows")
    return 0


def _results(configfile: Path) -> Path:
    from isotrace.study import validated
    from isotrace.yamlfile import read_mapping

    return validated(read_mapping(configfile)).results
