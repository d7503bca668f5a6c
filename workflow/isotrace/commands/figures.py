"""``isotrace figures``: draw figures from tables alone, where nothing of the workflow is installed."""

import argparse
from pathlib import Path

from isotrace.commands.registry import command


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace figures``."""
    add = parser.add_argument
    add("names", nargs="*", metavar="FIGURE", help="which; without them all that the tables suffice for")
    add("--tables", type=Path, default=Path("results/tables"), help="folder of the study's .parquet tables")
    add("--out", type=Path, required=True, help="folder that the figures are written to")
    add("--drawing", type=Path, help="the study's drawing.json (default: ../paper beside the tables, if there)")
    add("--captions", type=Path, help="folder of the study's captions, {figure}.rst (default: ../figures, if there)")
    add("--venue", help="another style: icml, icml-column, neurips, acl or acl-column")
    add("--rank", type=int, help="another rank, if the tables have it")


@command(
    "figures",
    help="draw figures from a study's tables alone; needs no torch, transformers or Snakemake",
    options=add_options,
    examples=(
        "isotrace figures --out figures",
        "isotrace figures energy_over_training --tables tables --out figures --venue acl-column",
    ),
)
def _figures(options: argparse.Namespace) -> int:
    from isotrace.paper.redraw import redraw

    beside = options.tables.parent / "figures"
    changed = {name: value for name, value in (("venue", options.venue), ("rank", options.rank)) if value is not None}
    made = redraw(
        options.tables,
        options.out,
        names=options.names,
        drawing=options.drawing,
        captions=options.captions or (beside if beside.is_dir() else None),
        options=changed,
    )
    print(*made, sep="\n")
    return 0
