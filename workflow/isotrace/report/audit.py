"""What the audit says, for the page: warnings in a line each, all findings, and every checkpoint folded away.
The layout is our choice."""

import html
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from isotrace.checkpoints.overview import overview
from isotrace.report.markup import items, table


def warnings(audit: pd.DataFrame, headline: Sequence[str]) -> str:
    """A box that stands first on the page: leaks, and what is wrong with which model; empty where nothing is."""
    lines = [line.removeprefix("warning: ") for line in headline if line.startswith("warning: ")]
    for (model, finding), rows in audit.groupby(["model", "finding"], sort=True):
        where = ", ".join(map(str, rows["checkpoint"][:5])) + (", …" if len(rows) > 5 else "")
        lines.append(f"{model}: {finding} ({rows['severity'].iloc[0]}) at {where}")
    return f"<div class=warnings><b>Warnings</b>{items(lines)}</div>" if lines else ""


def findings(audit: pd.DataFrame, locks: Sequence[Mapping[str, Any]]) -> str:
    """The audit's table, then each series."""
    found = "<p>Nothing to report.</p>" if audit.empty else table(audit)
    return found + "".join(map(_series, locks))


def _series(lock: Mapping[str, Any]) -> str:
    """Every checkpoint of a series, folded away; columns that are empty in all rows are left out."""
    frame = pd.DataFrame(overview(dict(lock)))
    frame = frame.loc[:, (frame != "").any()]
    told = f"{lock['model']}: {len(lock['checkpoints'])} checkpoints, {lock['total_steps']:,} steps"
    return f"<details><summary>{html.escape(told)}</summary>{table(frame)}</details>"
