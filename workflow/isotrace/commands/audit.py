"""``isotrace audit``: every checkpoint of a study as its audit found it."""

import argparse

from isotrace.commands.registry import add_configfile, command
from isotrace.errors import DataError
from isotrace.study import read


@command(
    "audit",
    help="every checkpoint of a study as its audit found it",
    options=add_configfile,
    examples=("isotrace audit --configfile mine.yaml",),
)
def _audit(options: argparse.Namespace) -> int:
    from isotrace.auditview import print_audit
    from isotrace.results import read_locks

    study = read(options.configfile)
    locks = [study.results / "checkpoints" / f"{model}.lock.json" for model in study.models]
    for path in locks:
        if not path.is_file():
            raise DataError(f"{path}: not there; run the audit: isotrace run audit --configfile {options.configfile}")
    print_audit(read_locks(map(str, locks)))
    return 0
