"""``isotrace headline``: the main numbers of a finished study in plain words."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.study import read


@command(
    "headline",
    help="the main numbers of a finished study in plain words",
    options=add_configfile,
    examples=("isotrace headline", "isotrace headline --configfile mine.yaml"),
)
def _headline(options: argparse.Namespace) -> int:
    from isotrace.finished import finished
    from isotrace.headline import headline
    from isotrace.notes import audit_notes

    study = read(options.configfile)
    names = ("energy", "isotropy", "geometry", "controls", "claims")
    tables, locks = finished(study, names, options.configfile)
    lines = headline(tables, rank=study.dynamics.rank, method=study.dynamics.method)
    print("\n".join([*lines, *audit_notes(locks, study)]))
    results = study.results
    print(f"tables: {results}/tables   figures: {results}/figures   all on one page: {results}/report.html")
    return 0
