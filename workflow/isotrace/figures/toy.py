"""How alike the outputs of an untrained block are, over the scale of its queries and keys and its inputs' cosine.
Godey et al. 2024 (random blocks); drawn from table ``toy``, which no checkpoint enters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.errors import DataError
from isotrace.figures import style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANELS = {
    "attention": "attention alone",
    "residual": "+ residual",
    "norm": "+ layer norm",
    "mlp": "+ MLP",
}
LOOKS = {"within": "-", "across": "--"}
RING: dict[str, Any] = {"color": style.INK, "ls": "none", "marker": "o", "ms": 6, "mfc": "none", "mew": 0.7}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn: the whole table; ``cosine`` is a mean over seeds, ``lo`` and ``hi`` its interval."""
    if "toy" not in tables:
        raise DataError("table 'toy' is needed here but was not given")
    keys = ["component", "input_cosine", "pairs", "qk_scale"]
    return tables["toy"].sort_values(keys, kind="stable").reset_index(drop=True)


@figure("toy")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A panel per part of the block; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    wide = style.wide(options)
    with style.style(options):
        fig, axes = style.grid(1 if wide else 2, 4 if wide else 2, inches=style.width(options), row_height=1.9)
        cosines = sorted(set(drawn["input_cosine"]))
        colours = dict(zip(cosines, style.ramp(len(cosines)), strict=True))
        for i, (component, title) in enumerate(PANELS.items()):
            ax = axes.flat[i]
            _panel(ax, drawn[drawn["component"] == component], colours)
            style.letter(ax, i, title)
            ax.set_xlabel("scale of q·k (factor)")
            first = ax.get_subplotspec().is_first_col()
            ax.tick_params(labelleft=first)
            if first:
                ax.set_ylabel("mean cosine of outputs\n(1 = all one direction)")
        _legend(fig, drawn, colours)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame, colours: dict[float, str]) -> None:
    if rows.empty:
        style.absent(ax, "no rows")
        return
    scales = sorted(set(rows["qk_scale"]))
    at = {scale: k for k, scale in enumerate(scales)}
    ax.set_xticks(range(len(scales)), [f"{s:g}" for s in scales])
    ax.set_ylim(-0.05, 1.05)
    for cosine, colour in colours.items():
        ax.axhline(cosine, color=colour, lw=0.5, ls=":", zorder=0)
        for k, (pairs, ls) in enumerate(LOOKS.items()):
            line = rows[(rows["input_cosine"] == cosine) & (rows["pairs"] == pairs)].sort_values("qk_scale")
            x = np.array([at[s] for s in line["qk_scale"]])
            ax.plot(x, line["cosine"], color=colour, ls=ls, marker=style.marker(k))
            ax.fill_between(x, line["lo"], line["hi"], color=colour, alpha=0.16, lw=0)
            known = line["expected"].notna().to_numpy()
            ax.plot(
                x[known], line["expected"][known], color=style.INK, ls="none", marker="o", ms=6, mfc="none", mew=0.7
            )


def _legend(fig: Figure, drawn: pd.DataFrame, colours: dict[float, str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    inputs: list[Any] = [
        Line2D([], [], color=colour, label=f"input cosine {cosine:g} (dotted)") for cosine, colour in colours.items()
    ]
    pairs = [
        Line2D([], [], color=style.INK, ls=ls, marker=style.marker(k), label=f"pairs {name} sequences")
        for k, (name, ls) in enumerate(LOOKS.items())
    ]
    ring = Line2D([], [], label="expected", **RING)
    seeds = f"{int(drawn['n_seeds'].min())} seeds" if len(drawn) else "seeds"
    shade = Patch(color=style.COOL, alpha=0.25, lw=0, label=f"interval of the mean over {seeds}")
    style.legend(fig, [inputs, [*pairs, ring, shade]])
