"""A table of LaTeX with the rules of booktabs.
Our own choice: a tabular for a float of yours, or a longtable where it would not fit on a page."""

from __future__ import annotations

import re
from collections.abc import Sequence

from isotrace.paper.tex import Cell, escape, tex

LONG = 40
"""Rows from which a table breaks over pages."""


def table(heads: Sequence[Cell], rows: Sequence[Sequence[Cell]], *, align: str, notes: Sequence[str] = ()) -> str:
    r"""A table with booktabs rules; ``notes`` stand below it. ``align`` as LaTeX wants it.

    Up to ``LONG`` rows a tabular for a float of yours, beyond that a longtable, which stands by itself.
    """
    columns = len(re.findall(r"[lrcp]", re.sub(r"\{[^}]*\}", "", align)))
    long = len(rows) > LONG
    name = "longtable" if long else "tabular"
    head = " & ".join(tex(h) for h in heads) + r" \\"
    body = [_guarded(" & ".join(tex(c) for c in row)) + r" \\" for row in rows]
    body = body or [rf"\multicolumn{{{columns}}}{{l}}{{no rows}} \\"]
    foot = [rf"\multicolumn{{{columns}}}{{l}}{{\footnotesize {escape(note)}}} \\" for note in notes]
    repeat = [r"\endhead"] if long else []
    lines = [rf"\begin{{{name}}}{{{align}}}", r"\toprule", head, r"\midrule", *repeat, *body, r"\bottomrule", *foot]
    return "\n".join([*lines, rf"\end{{{name}}}", ""])


def _guarded(row: str) -> str:
    r"""A row that the \\ before it does not take for its option or star."""
    return f"{{}}{row}" if row[:1] in "[*" else row
