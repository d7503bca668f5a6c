"""What a finished study left behind, for commands that show it; files that are missing or another study's are named."""

from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.errors import DataError
from isotrace.results import read_locks, read_tables
from isotrace.study import Study


def finished(
    study: Study, names: tuple[str, ...], configfile: Path
) -> tuple[dict[str, pd.DataFrame], list[dict[str, Any]]]:
    """The tables by name, without copies of checkpoints, and the locks of all models.

    DataError, one line, where a file is not there or the tables are another study's.
    """
    results, again = study.results, f"isotrace run --configfile {configfile}"
    paths = [results / "tables" / f"{name}.parquet" for name in names]
    locks = [results / "checkpoints" / f"{model}.lock.json" for model in study.models]
    for path in (*paths, *locks):
        if not path.is_file():
            raise DataError(f"{path}: not there; finish the study first: {again}")
    known = read_locks(map(str, locks))
    tables = read_tables(map(str, paths), known)
    held = sorted({s for frame in tables.values() if "study" in frame for s in frame["study"]})
    if held != [study.study]:
        raise DataError(f"{results}/tables hold study {', '.join(held)}, not {study.study}; run it again: {again}")
    return tables, known
