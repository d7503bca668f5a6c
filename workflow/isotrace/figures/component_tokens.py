"""The token types at either end of a tangent basis's leading directions: what they are, in words.
Naming directions by their extreme tokens is common practice; one site and a bar a type are our choice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = ["model", "checkpoint", "step", "site", "layer", "component", "sign", "order", "token_id", "token", "bucket"]
VALUES = ["score", "n_occurrences", "reason"]
WHISKER: dict[str, Any] = {"fmt": "none", "ecolor": style.INK, "elinewidth": 0.6}
_LONGEST = 14
"""Characters of a token that a label shows."""


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The bars drawn, from table ``components``: one row per model, component, end and place.

    Options: ``method`` ("pca"), ``sites`` (the last block), ``components`` (the first 4), ``tokens`` at either end (5).
    """
    rows = frames.pick(frames.table(tables, "components"), method=options.get("method", "pca"))
    rows = rows[rows["component"] <= int(options.get("components", 4))]
    rows = rows[rows["order"].isna() | (rows["order"] <= int(options.get("tokens", 5)))]
    shown = [frames.pick(model, site=frames.end_blocks(model, options)[-1]) for _, model in rows.groupby("model")]
    rows = pd.concat(shown) if shown else rows
    keys = ["model", "component", "sign", "order"]
    return rows[[*COLUMNS, *VALUES]].sort_values(keys, kind="stable").reset_index(drop=True)


@figure("component_tokens")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per component; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    components = sorted(drawn["component"].unique()) or [1]
    columns = min(len(components), 4 if style.wide(options) else 2)
    bands = -(-len(components) // columns)
    buckets = frames.in_order(drawn.loc[drawn["bucket"] != "", "bucket"])
    colours = dict(zip(buckets, style.ramp(len(buckets)), strict=True))
    with style.style(options):
        fig, axes = style.grid(max(len(models), 1) * bands, columns, inches=style.width(options), row_height=1.5)
        for ax in axes.flat:
            ax.set_visible(False)
        for i, model in enumerate(models):
            here = drawn[drawn["model"] == model]
            for j, component in enumerate(components):
                ax = axes[i * bands + j // columns][j % columns]
                _panel(ax, here[here["component"] == component], colours)
                style.letter(ax, i * len(components) + j, f"component {component}")
                if j % columns == 0:
                    ax.set_ylabel(f"{model}\n{here['site'].iloc[0]}".replace("_", " "))
                if i == len(models) - 1 and j // columns == bands - 1:
                    ax.set_xlabel("score (sd of a row)")
        if not models:
            axes[0][0].set_visible(True)
            style.absent(axes[0][0], "no rows")
        _legend(fig, colours, options)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame, colours: Mapping[str, str]) -> None:
    ax.set_visible(True)
    told = rows[rows["score"].notna()]
    if told.empty:
        ax.set_xticks([])
        ax.set_yticks([])
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    upper, lower = told[told["sign"] == "+"], told[told["sign"] == "-"][::-1]
    bars = pd.concat([upper, lower])
    y = -np.arange(len(bars), dtype=float) - np.repeat([0.0, 0.6], [len(upper), len(lower)])
    ax.barh(y, bars["score"], color=[colours[str(b)] for b in bars["bucket"]], height=0.72, lw=0)
    ax.errorbar(bars["score"], y, xerr=half_width(bars["n_occurrences"]), **WHISKER)
    ax.axvline(0, color=style.MUTED, lw=0.6)
    ax.set_yticks(y, [label(t, i) for t, i in zip(bars["token"], bars["token_id"], strict=True)])
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.tick_params(axis="y", length=0, labelsize=5.5)


def half_width(occurrences: pd.Series) -> pd.Series:
    """Two standard errors of a type's mean score, were its rows as spread as all rows, whose deviation is 1.

    Rows of one type vary less than all rows, of all types, so the interval is rather too wide.
    """
    return 2 * occurrences.astype(float) ** -0.5


def label(token: str, token_id: int) -> str:
    """A token as the figure shows it: spaces visible, too long ones cut, what the font lacks escaped."""
    if not token:
        return f"id {token_id}"
    cut = token if len(token) <= _LONGEST else f"{token[: _LONGEST - 1]}…"
    shown = cut.replace(" ", "␣")
    return "".join(c if ord(c) in _glyphs() else c.encode("unicode_escape").decode() for c in shown)


@cache
def _glyphs() -> frozenset[int]:
    """Code points that the font of all figures can draw."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(get_font(findfont(FontProperties(family=style.settings()["font.sans-serif"]))).get_charmap())


def _legend(fig: Figure, colours: Mapping[str, str], options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = style.bucket_names(list(colours), options)
    bars: list[Any] = [Patch(color=colour, lw=0, label=names[bucket]) for bucket, colour in colours.items()]
    label = "±2 standard errors at most (rows of a token as spread as all)"
    style.legend(fig, [bars, [Line2D([], [], color=style.INK, lw=0.6, label=label)]])
