"""The declared claims as a table: verdict, sentence, estimate and interval; how it was computed folds away.
The layout is our choice."""

import html
from collections.abc import Mapping
from typing import Any

import pandas as pd

from isotrace.report.markup import short

MEANING = (
    "<p>Declared before the run. Supported: the whole interval agrees with what was expected; "
    "contradicted: none of it does; undecided: else, or a value is missing.</p>"
)
HEAD = ("verdict", "claim", "model", "estimate [interval]", "expected")


def claims_table(claims: pd.DataFrame, sentences: Mapping[str, str]) -> str:
    """A row a claim and model, in the order of ``sentences`` ({claim: what it says})."""
    order = list(sentences)
    records: list[dict[str, Any]] = claims.to_dict("records")  # type: ignore[assignment]
    rows = sorted(records, key=lambda c: order.index(c["claim"]))
    counts = claims["verdict"].value_counts()
    told = ", ".join(f"{counts.get(v, 0)} {v}" for v in ("supported", "contradicted", "undecided"))
    head = "".join(f"<th>{name}</th>" for name in HEAD)
    body = "".join(_row(c, sentences[c["claim"]]) for c in rows)
    return f"{MEANING}<p>{told}.</p><div class=wide><table class=claims><tr>{head}</tr>{body}</table></div>"


def _row(claim: Mapping[str, Any], sentence: str) -> str:
    interval = "" if claim["lo"] != claim["lo"] else f" [{short(claim['lo'])}, {short(claim['hi'])}]"
    how = html.escape(f"{claim['claim']} ({claim['source']}): {claim['aggregate']}. {claim['note']}")
    cells = [
        f"<td class='{html.escape(claim['verdict'])}'>{html.escape(claim['verdict'])}</td>",
        f"<td>{html.escape(sentence)}<details><summary>how</summary>{how}</details></td>",
        f"<td title=model>{html.escape(claim['model'])}</td>",
        f"<td title=estimate>{html.escape(short(claim['estimate']) + interval)}</td>",
        f"<td title=expected>{html.escape(claim['expected'])}</td>",
    ]
    return f"<tr>{''.join(cells)}</tr>"
