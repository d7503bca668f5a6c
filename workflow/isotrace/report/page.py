"""One self-contained page of a study: everything that a reader needs to judge it, for phone and desktop, no network.
Its order is our choice: warnings, what was found, figures, how it was measured, on what, and what it took."""

import html
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from isotrace.report.audit import findings, warnings
from isotrace.report.cite import references
from isotrace.report.claims import claims_table
from isotrace.report.explore import chart, interactive, points
from isotrace.report.markup import caption, document, items, section, table
from isotrace.report.methods import notes
from isotrace.report.pictures import picture

PACKAGES = ("isotrace", "numpy", "torch", "transformers", "snakemake")
MAIN = "energy_over_training"
LINKS = ("claims", "figures", "methods", "audit", "text", "runtime", "config", "cite")
PICKED = (
    "Lines, marks and intervals as in the figure; grey: random normal subspaces. Copies of other checkpoints and "
    "broken ones are left out. Points show their numbers."
)


def page(
    *,
    tables: Mapping[str, pd.DataFrame],
    headline: Sequence[str],
    sentences: Mapping[str, str],
    locks: Sequence[Mapping[str, Any]],
    text: pd.DataFrame,
    figures: Mapping[Path, str],
    runtime: pd.DataFrame,
    config: Mapping[str, Any],
    citation: Mapping[str, Any],
) -> str:
    """The page as HTML; the same bytes for the same inputs.

    ``tables`` holds energy, claims and audit; ``sentences`` say each claim in words, in the order to show; ``locks``
    are the audited series; ``figures`` maps PNG files to captions in reStructuredText; ``runtime`` is that of
    `isotrace.report.runtime` and the only part that two runs of one study do not share.
    """
    body = [
        "<nav>" + "".join(f"<a href='#{name}'>{name}</a>" for name in LINKS) + "</nav>",
        warnings(tables["audit"], headline),
        items(line for line in headline if not line.startswith("warning: ")),
        section("claims", "Claims", claims_table(tables["claims"], sentences)),
        section("figures", "Figures", *_figures(figures, tables["energy"], config["dynamics"])),
        section("methods", "What the numbers are", notes(config)),
        section("audit", "Audit of the checkpoints", findings(tables["audit"], locks)),
        section("text", "Text", "<p>What each model reads.</p>", table(text)),
        section("runtime", "What it took", _took(runtime)),
        section("config", "Config and versions", _config(config)),
        section("cite", "How to cite", items(references(citation))),
    ]
    return document(title=str(config["study"]), body=body)


def _figures(figures: Mapping[Path, str], energy: pd.DataFrame, read: Mapping[str, Any]) -> list[str]:
    """Every figure; what can be picked follows the main one, and leads where that is not drawn."""
    shown = {path.stem: picture(path, caption(text)) for path, text in figures.items()}
    found = points(energy, rank=read["rank"], method=read["method"], null_space=read["null_space"])
    if found["ratio"].notna().any():
        shown[MAIN] = shown.get(MAIN, "") + interactive(chart(found, rank=read["rank"]), PICKED)
    return [shown[name] for name in sorted(shown, key=lambda name: name != MAIN)]


def _took(runtime: pd.DataFrame) -> str:
    said = "<p>Jobs by rule, each as it ran last. Times are of single jobs, some of which ran side by side.</p>"
    return said + table(runtime) if len(runtime) else "<p>No benchmark files were found.</p>"


def _config(config: Mapping[str, Any]) -> str:
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    said = html.escape(yaml.safe_dump(dict(config), sort_keys=False))
    return f"<p>{html.escape(versions)}</p><details><summary>every key</summary><pre>{said}</pre></details>"
