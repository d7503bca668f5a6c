"""A figure with all that goes with it: PDF, PNG, the CSV of what is drawn, its caption as LaTeX and reStructuredText.
Our own choice: one function, so that a figure redrawn from tables alone is the one that the workflow draws."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.figures.registry import find
from isotrace.figures.style import save
from isotrace.paper import captions

KINDS = ("pdf", "png", "csv", "tex", "rst")
"""The files of a figure, by their endings."""


def draw(
    name: str,
    tables: Mapping[str, pd.DataFrame],
    options: Mapping[str, Any],
    *,
    text: str,
    files: Mapping[str, str | Path],
) -> None:
    """Draw figure ``name`` and write ``files`` (a path for each of ``KINDS``); ``text`` begins its caption.

    ``tables`` as ``figures.frames.one_a_group`` gives them.
    """
    figure, drawn = find(name)(tables, options)
    save(figure, drawn, pdf=files["pdf"], png=files["png"], csv=files["csv"])
    told = captions.caption(name, text, tables, figure, drawn, options)
    captions.write(rst=files["rst"], tex=files["tex"], text=told)
