"""Grids of panels that several figures share: a row a model with a column a site, or a panel a model and measure.
Our own choice: one loop, so that letters, titles and the last row's labels are the same everywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrace.figures import frames, style
from isotrace.figures.registry import Options

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SitePanel = Callable[["Axes", pd.DataFrame, bool], None]
MeasurePanel = Callable[["Axes", str, str, bool], None]


def site_name(sites: list[str], j: int) -> str:
    """What the title calls the ``j``-th of ``sites``."""
    return sites[j].replace("_", " ")


def by_site(
    drawn: pd.DataFrame,
    options: Options,
    panel: SitePanel,
    *,
    title: Callable[[list[str], int], str] = site_name,
    row_height: float = 1.75,
) -> tuple[Figure, Any]:
    """A row of panels a model, a panel a site of it by depth; the figure and its axes.

    ``panel(ax, rows, last)`` draws the rows of one; ``last`` says whether it stands in the lowest row.
    """
    models = frames.in_order(drawn["model"])
    columns = max([drawn[drawn["model"] == m]["site"].nunique() for m in models], default=1)
    fig, axes = style.grid(max(len(models), 1), columns, inches=style.width(options), row_height=row_height)
    for i, model in enumerate(models):
        here = drawn[drawn["model"] == model]
        sites = frames.sites_in_order(here)
        for j, ax in enumerate(axes[i]):
            ax.set_visible(j < len(sites))
            if j < len(sites):
                panel(ax, here[here["site"] == sites[j]], i == len(models) - 1)
                style.letter(ax, i * columns + j, f"{model}, {title(sites, j)}")
    if not models:
        style.absent(axes[0][0], "no rows")
    return fig, axes


def by_measure(
    models: list[str], measures: Iterable[str], options: Options, panel: MeasurePanel, *, row_height: float
) -> tuple[Figure, Any]:
    """A panel a model and measure, side by side where the figure spans a page; the figure and its axes.

    ``panel(ax, model, measure, last)`` draws one; ``last`` says whether it stands in the lowest row.
    """
    kinds = list(measures)
    columns = len(kinds) if style.wide(options) else 1
    places = list(product(models, kinds))
    rows = max(len(models), 1) * len(kinds) // columns
    fig, axes = style.grid(rows, columns, inches=style.width(options), row_height=row_height)
    for index, (model, kind) in enumerate(places):
        ax = axes.flat[index]
        panel(ax, model, kind, index >= len(places) - columns)
        style.letter(ax, index, model)
    return fig, axes
