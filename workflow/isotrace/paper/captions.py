"""Captions with the numbers behind a figure: what is drawn, of whom, n, rank, and what its shading is.
Our own choice: the sentences of workflow/report, then facts read from what was drawn, so that neither can drift."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames
from isotrace.paper.tex import from_rst, rst_escaped

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pd.DataFrame]

RANKED = ("energy_over_training", "early_late", "isotropy_ablation", "subspace_overlap", "alternatives")
"""Figures that are of one rank."""
SPREAD = re.compile(r"interval|range|± ?\d|draws|lowest to highest|standard error")
"""What a legend calls an uncertainty, or the spread of a null."""
VALUES = ("value", "ratio", "score", "overlap", "spearman", "isotropy", "cosine")
"""The columns that figures draw; each has one of them."""
STATUS = {
    "duplicate": "A hollow triangle is a checkpoint that copies another; no line joins it.",
    "broken": "A hollow square on the axis is a broken checkpoint.",
}


def caption(
    name: str, text: str, tables: Tables, figure: Figure, drawn: pd.DataFrame, options: Mapping[str, Any]
) -> str:
    """The caption in reStructuredText: ``text`` (what the figure shows), then facts.

    ``figure`` and ``drawn`` are what the figure's function returned for ``tables`` and ``options``.
    """
    facts = [
        _models(drawn, tables),
        _checkpoints(drawn),
        _rank(name, tables, options),
        _n(name, tables, drawn),
        _spread(figure),
        *(line for status, line in STATUS.items() if "status" in drawn and (drawn["status"] == status).any()),
        _missing(name, drawn),
    ]
    said = " ".join(fact for fact in facts if fact)
    return f"{text.strip()}\n\n{rst_escaped(said)}\n"


def write(rst: str | Path, tex: str | Path, text: str) -> None:
    """The caption as reStructuredText and as LaTeX."""
    for path, content in ((Path(rst), text), (Path(tex), from_rst(text) + "%\n")):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")


def _models(drawn: pd.DataFrame, tables: Tables) -> str:
    if "model" not in drawn or drawn.empty:
        return ""
    runs = {model: _runs(model, tables) for model in frames.in_order(drawn["model"])}
    same = set(runs.values())
    if len(same) > 1:
        named = [f"{model} ({_count(n, 'run')})" for model, n in runs.items()]
        return f"Models: {', '.join(named)}."
    each = " each" if len(runs) > 1 else ""
    return f"{'Models' if len(runs) > 1 else 'Model'}: {', '.join(runs)} ({_count(same.pop(), 'run')}{each})."


def _runs(model: str, tables: Tables) -> int:
    seeds = [t.loc[t["model"] == model, "seed"].nunique(dropna=False) for t in tables.values() if "seed" in t]
    return max(seeds, default=1) or 1


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _checkpoints(drawn: pd.DataFrame) -> str:
    if "step" not in drawn or drawn["step"].dropna().empty:
        return ""
    steps = drawn["step"].dropna().astype(int)
    counts = drawn.groupby("model")["step"].nunique()
    many = _range(counts)
    if steps.min() == steps.max():
        return f"Step {steps.min():,}."
    each = " a model" if len(counts) > 1 else ""
    return f"{many} checkpoints{each}, steps {steps.min():,} to {steps.max():,}."


def _rank(name: str, tables: Tables, options: Mapping[str, Any]) -> str:
    method = f"Method {options['method']}." if "method" in options else ""
    if name not in RANKED:
        return method
    ranks = [frames.rank_of(table, options) for table in tables.values() if "rank" in table and len(table)]
    return f"Rank {ranks[0]}. {method}".strip() if ranks else method


def _n(name: str, tables: Tables, drawn: pd.DataFrame) -> str:
    """n = what one drawn value rests on, as far as the tables say it."""
    parts = [_rows_behind(tables, drawn)]
    if not parts[0]:
        parts = [text for column, text in _COUNTED.items() for text in _counted(column, text, tables, drawn)]
    if not any(parts) and "model" in drawn and "step" in drawn and len(drawn):
        parts = [f"{_range(drawn.groupby('model')['step'].nunique())} checkpoints a model"]
    return f"n = {'; '.join(p for p in parts if p)}." if any(parts) else ""


_COUNTED = {
    "n_types": "token types a correlation",
    "n_seeds": "blocks drawn a value",
    "n_occurrences": "rows a token",
    "head": "heads a layer",
}


def _counted(column: str, text: str, tables: Tables, drawn: pd.DataFrame) -> Iterable[str]:
    for frame in (drawn, *tables.values()):
        if column in frame and frame[column].notna().any():
            found = frame[column].dropna().astype(int)
            if column == "head":
                found = frame.dropna(subset=["head"]).groupby(["model", "layer"])["head"].nunique()
            yield f"{_range(found)} {text}"
            return


def _rows_behind(tables: Tables, drawn: pd.DataFrame) -> str:
    """Evaluation tokens a site and bucket, over the models, sites and buckets that are drawn."""
    keys = [c for c in ("model", "site", "bucket") if c in drawn]
    for table in tables.values():
        if "n_tokens" not in table or not set(keys) <= set(table):
            continue
        kept = table.dropna(subset=["n_tokens"])
        kept = kept[(kept["n_tokens"] > 0) & np.logical_and.reduce([kept[k].isin(set(drawn[k])) for k in keys])]
        if len(kept):
            return f"{_range(kept['n_tokens'].astype(int))} evaluation tokens a site and bucket"
    return ""


def _range(values: pd.Series) -> str:
    low, high = int(values.min()), int(values.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _spread(figure: Figure) -> str:
    """The uncertainties that the legend names, in its words."""
    labels = [text.get_text() for legend in figure.legends for text in legend.get_texts()]
    named = [label for label in labels if SPREAD.search(label)]
    return f"Uncertainty: {'; '.join(dict.fromkeys(named))}." if named else ""


def _missing(name: str, drawn: pd.DataFrame) -> str:
    value = next((c for c in VALUES if c in drawn), None)
    if value is None:
        return ""
    values = drawn.loc[drawn["part"] == "correlation", value] if "part" in drawn else drawn[value]
    gone = int(values.isna().sum())
    return f"{gone:,} of {len(values):,} values are missing; {name}.csv gives each its reason." if gone else ""
