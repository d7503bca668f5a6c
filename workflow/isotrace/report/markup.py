"""Text of a study as HTML: tables, captions, sections; everything that a config or a table says is escaped.
Our choice; the page is written as text, without a template language."""

import html
import re
from collections.abc import Iterable
from typing import Any

import pandas as pd

STYLE = """
*{box-sizing:border-box}body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:0 auto;padding:1rem;
color:#1a1a1a;background:#fff;overflow-wrap:anywhere}h1{font-size:1.6rem;margin:.5rem 0}
h2{font-size:1.25rem;margin:2.2rem 0 .6rem;border-bottom:1px solid #ddd}h3{font-size:1rem;margin:1.2rem 0 .3rem}
p,ul{margin:.5rem 0}ul{padding-left:1.2rem}nav{display:flex;flex-wrap:wrap;gap:.2rem 1rem;margin:.8rem 0}
a{color:#1f4f8f}img{display:block;width:100%;height:auto}figure{margin:1.5rem 0}figcaption{color:#444;margin-top:.4rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem;overflow-wrap:normal}
th,td{padding:.3rem .7rem .3rem 0;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
td.number{text-align:right;white-space:nowrap}details{color:#555;font-size:.85rem}summary{cursor:pointer}
.warnings{border-left:.35rem solid #a86400;background:#fbeed6;padding:.4rem .8rem;margin:1rem 0}
.supported{color:#1b6e3c}.contradicted{color:#a4262c}.undecided{color:#6b5900}small,.muted{color:#555}
pre{font-size:.8rem;overflow-x:auto}math{font-size:1.15rem}dt{font-weight:600;margin-top:.7rem}dd{margin:0}
.formula{overflow:auto hidden;padding:.4rem 0}#choose{display:flex;flex-wrap:wrap;gap:.3rem 1.2rem;margin:.4rem 0}
#choose select{font:inherit;max-width:100%}#chart{width:100%}
@media(max-width:40rem){.claims tr{display:block;border-bottom:1px solid #ddd;padding:.4rem 0}.claims th{display:none}
.claims td{display:block;border:0;padding:.05rem 0}.claims td[title]::before{content:attr(title)": ";color:#555}}
"""


def document(*, title: str, body: Iterable[str]) -> str:
    """A whole page for phone and desktop that loads nothing."""
    named = html.escape(title)
    view = "<meta name=viewport content='width=device-width, initial-scale=1'>"
    head = f"<meta charset=utf-8>{view}<title>{named}</title><style>{STYLE}</style>"
    return f"<!doctype html><html lang=en><head>{head}</head><body><h1>{named}</h1>{''.join(body)}</body></html>\n"


def section(name: str, title: str, *parts: str) -> str:
    """A titled section that a link can lead to."""
    return f"<section id={name}><h2>{html.escape(title)}</h2>{''.join(parts)}</section>"


def table(frame: pd.DataFrame) -> str:
    """A frame as an HTML table; missing numbers read n/a."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame)
    rows = ("<tr>" + "".join(map(_cell, row.values())) + "</tr>" for row in frame.to_dict("records"))
    return f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def _cell(value: Any) -> str:
    mark = " class=number" if isinstance(value, int | float) else ""
    return f"<td{mark}>{html.escape(short(value))}</td>"


def short(value: Any) -> str:
    """A number with three digits, counts in full; text as it is."""
    if isinstance(value, float):
        return "n/a" if value != value else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def items(texts: Iterable[str]) -> str:
    """A list of plain lines."""
    return "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in texts) + "</ul>"


MARKS = re.compile(r"\*\*(?P<b>.+?)\*\*|\*(?P<em>.+?)\*|``(?P<code>.+?)``|\\(?P<plain>.)")


def caption(text: str) -> str:
    """A caption in reStructuredText as HTML: its strong, emphasised, literal and escaped characters."""
    return MARKS.sub(_styled, html.escape(" ".join(text.split()), quote=False))


def _styled(found: re.Match[str]) -> str:
    said = found[found.lastgroup or 0]
    return said if found.lastgroup == "plain" else f"<{found.lastgroup}>{said}</{found.lastgroup}>"
