"""How much gradient energy the first k tangent directions hold, for every k, as training goes on.
Energy of Bernas et al. 2026, which fixes one rank; the curve over ranks is our choice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, panels, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "site", "layer", "checkpoint", "step", "rank"]
MOST = 5


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``rank_curve``: one row per model, site, checkpoint and rank.

    Options: ``method`` ("pca"), ``basis`` ("fixed"), ``quantity`` ("gradient"), ``sites`` (first and last block),
    ``checkpoints`` (how many a model: 5, evenly spaced). ``value`` is the mean over buckets; its interval the mean of
    theirs, as if all erred together, or the range over seeds; ``isotropic`` is k/d.
    """
    table = frames.table(tables, "rank_curve")
    rows = frames.pick(
        table,
        statistic="energy",
        quantity=options.get("quantity", "gradient"),
        method=options.get("method", "pca"),
        basis=options.get("basis", "fixed"),
    )
    shown = [_chosen(model, options) for _, model in rows.groupby("model")]
    rows = pd.concat(shown) if shown else rows
    means = rows.groupby([*KEYS, "seed"], as_index=False, dropna=False).agg(
        value=("value", frames.mean_of_all),
        lo=("lo", frames.mean_of_all),
        hi=("hi", frames.mean_of_all),
        isotropic=("isotropic", "first"),
        reason=("reason", lambda reasons: next((str(r) for r in reasons if r), "")),
    )
    points = frames.over_seeds(means, KEYS, "value")
    level = means.groupby(KEYS, as_index=False, dropna=False).agg(isotropic=("isotropic", "first"))
    return points.merge(level, on=KEYS, validate="one_to_one")


def _chosen(model: pd.DataFrame, options: Options) -> pd.DataFrame:
    """The end blocks of one model at some of the checkpoints that have a value."""
    known = model[model["value"].notna()] if model["value"].notna().any() else model
    some = frames.spread([str(step) for step in sorted(set(known["step"]))], int(options.get("checkpoints", MOST)))
    return frames.pick(model, site=frames.end_blocks(model, options), step=[int(step) for step in some])


@figure("rank_curve")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per site; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    every = sorted(set(drawn["step"]))
    colours = dict(zip(every, style.ramp(len(every)), strict=True))
    with style.style(options):
        fig, axes = panels.by_site(drawn, options, partial(_panel, colours=colours))
        for row in axes:
            row[0].set_ylabel("gradient energy in k\ndirections (share of all)")
        _legend(fig, drawn, colours, options)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame, last: bool, *, colours: Mapping[int, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.set_xlabel("rank k (directions)" if last else "")
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    flat = rows.drop_duplicates("rank").sort_values("rank")
    ax.plot(flat["rank"], flat["isotropic"], color=style.MUTED, ls=":", lw=1.0)
    for k, (step, line) in enumerate(rows.sort_values("rank").groupby("step")):
        colour = colours[step]  # type: ignore[index]
        ax.plot(line["rank"], line["value"], color=colour, marker=style.marker(k), markevery=_every(len(line)))
        ax.fill_between(line["rank"], line["lo"], line["hi"], color=colour, alpha=0.16, lw=0)
    ax.set_ylim(0, max(1.05 * float(np.nanmax(rows[["value", "hi", "isotropic"]])), 1e-3))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=6))


def _every(ranks: int) -> int:
    """Markers at no more than nine ranks: more of them would hide the line."""
    return max(1, ranks // 8)


def _legend(fig: Figure, drawn: pd.DataFrame, colours: Mapping[int, str], options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    steps: list[Any] = [
        Line2D([], [], color=colour, label="untrained" if step == 0 else f"step {step:,}")
        for step, colour in colours.items()
    ]
    notes = [
        Line2D([], [], color=style.MUTED, ls=":", label="if energy were even in all directions (k / width)"),
        Patch(color=style.COOL, alpha=0.25, lw=0, label=f"{style.interval_name(drawn, options)}; mean over buckets"),
    ]
    style.legend(fig, [steps, notes])
