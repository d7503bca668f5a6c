"""The audit of a study's checkpoints in the terminal: the table of the report, drawn by rich."""

from collections.abc import Iterable
from typing import Any

from isotrace.checkpoints.overview import overview
from isotrace.errors import DataError


def print_audit(locks: Iterable[dict[str, Any]]) -> None:
    """A table a series on stdout; columns that are empty in all its rows are left out.

    DataError for a lock of an older version, which says less than is shown.
    """
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)  # a reason may hold brackets, which markup would swallow
    for lock in locks:
        if "left_out" not in lock:
            raise DataError(f"the lock of {lock['model']} is an older version's; run the study's target audit again")
        rows = overview(lock)
        names = [name for name in rows[0] if any(row[name] for row in rows)]
        table = Table(*names, title=f"{lock['model']} ({lock['provider']}, {lock['total_steps']:,} steps)")
        for row in rows:
            table.add_row(*(row[name] for name in names), style="yellow" if row["findings"] else None)
        console.print(table)
