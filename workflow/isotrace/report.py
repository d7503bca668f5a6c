"""One self-contained page of a study: claims, figures with captions, text, audit, config; no script, no network."""

import base64
import html
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.checkpoints.overview import overview

PACKAGES = ("isotrace", "numpy", "torch", "transformers", "snakemake")

STYLE = """
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a}
img{max-width:100%;height:auto}figure{margin:2rem 0}figcaption{color:#444}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}
th,td{padding:.3rem .6rem;border-bottom:1px solid #ddd;text-align:left;vertical-align:top}
details{color:#555;font-size:.8rem}summary{cursor:pointer}
.supported{color:#1b6e3c}.contradicted{color:#a4262c}.undecided{color:#6b5900}pre{font-size:.8rem;overflow-x:auto}
"""


def page(
    *,
    study: str,
    claims: pd.DataFrame,
    sentences: Mapping[str, str],
    audit: pd.DataFrame,
    locks: Sequence[Mapping[str, Any]],
    text: pd.DataFrame,
    headline: Sequence[str],
    figures: Mapping[Path, str],
    config: str,
) -> str:
    """The page as HTML.

    ``sentences`` say each claim in words, in the order to show; ``figures`` maps PNG files to captions; ``locks``
    are the audited series; config is YAML.
    """
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    parts = [
        f"<h1>{html.escape(study)}</h1>",
        "<ul>" + "".join(f"<li>{html.escape(line)}</li>" for line in headline) + "</ul>",
        "<h2>Figures</h2>",
        *(_figure(path, caption) for path, caption in figures.items()),
        "<h2>Claims</h2><p>Declared before the run. Supported: the whole interval agrees with what was expected; "
        "contradicted: none of it does; undecided: else, or a value is missing.</p>",
        _claims(claims, sentences),
        "<h2>Text</h2><p>What each model reads.</p>",
        table(text),
        "<h2>Audit of the checkpoints</h2>",
        "<p>Nothing to report.</p>" if audit.empty else table(audit),
        *(_series(lock) for lock in locks),
        f"<h2>Config</h2><pre>{html.escape(config)}</pre><p>{html.escape(versions)}</p>",
    ]
    head = f"<meta charset=utf-8><meta name=viewport content='width=device-width'><title>{html.escape(study)}</title>"
    return (
        f"<!doctype html><html lang=en><head>{head}<style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _claims(claims: pd.DataFrame, sentences: Mapping[str, str]) -> str:
    """A row a claim and model: verdict, sentence, estimate; how it was computed folds away."""
    rows = []
    order = list(sentences)
    for c in sorted(claims.to_dict("records"), key=lambda c: order.index(c["claim"])):
        interval = "" if c["lo"] != c["lo"] else f" [{_text(c['lo'])}, {_text(c['hi'])}]"
        how = html.escape(f"{c['claim']} ({c['source']}): {c['aggregate']}. {c['note']}")
        cells = [
            f"<td class='{html.escape(c['verdict'])}'>{html.escape(c['verdict'])}</td>",
            f"<td>{html.escape(sentences[c['claim']])}<details><summary>how</summary>{how}</details></td>",
            f"<td>{html.escape(c['model'])}</td>",
            f"<td>{html.escape(_text(c['estimate']) + interval)}</td>",
            f"<td>{html.escape(c['expected'])}</td>",
        ]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    head = "".join(f"<th>{name}</th>" for name in ("verdict", "claim", "model", "estimate [interval]", "expected"))
    return f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def _series(lock: Mapping[str, Any]) -> str:
    """Every checkpoint of a series, folded away; columns that are empty in all rows are left out."""
    frame = pd.DataFrame(overview(dict(lock)))
    frame = frame.loc[:, (frame != "").any()]
    told = f"{lock['model']}: {len(lock['checkpoints'])} checkpoints, {lock['total_steps']:,} steps"
    return f"<details><summary>{html.escape(told)}</summary>{table(frame)}</details>"


def table(frame: pd.DataFrame) -> str:
    """A frame as an HTML table; missing numbers read n/a."""
    head = "".join(f"<th>{html.escape(str(name))}</th>" for name in frame)
    rows = []
    for row in frame.to_dict("records"):
        rows.append("<tr>" + "".join(f"<td>{html.escape(_text(value))}</td>" for value in row.values()) + "</tr>")
    return f"<div class=wide><table><tr>{head}</tr>{''.join(rows)}</table></div>"


def caption(text: str) -> str:
    """A caption in reStructuredText as one plain line, without its marks of emphasis."""
    return " ".join(text.replace("*", "").split())


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "n/a" if value != value else f"{value:.3g}"
    return str(value)


def _figure(path: Path, caption: str) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    alt = html.escape(path.stem.replace("_", " "))
    text = html.escape(caption)
    return f"<figure><img alt='{alt}' src='data:image/png;base64,{data}'><figcaption>{text}</figcaption></figure>"
