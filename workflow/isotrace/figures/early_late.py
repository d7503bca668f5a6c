"""Energy ratio early against late in training, paired within a model, at every depth.
Bernas et al. 2026 (early and late 30 % of training); leave-one-out basis for early points is our choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "seed", "site", "layer", "basis", "phase"]
OFFSET = 0.22  # of a row: early above, late below
PANELS = {"fixed": "fixed basis", "moving": "moving basis"}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``energy``: one row per model, site, basis and phase (early, late).

    Options: ``rank`` (8), ``method`` ("pca"), ``quantity`` ("gradient"), ``null_space`` ("complement"), ``sites``
    (at most eight, evenly spaced over depth); ``early_fraction`` (0.3) and ``late_fraction`` (0.7) are labels only.
    ``ratio`` is the geometric mean over the phase's checkpoints and over buckets, with ``lo``, ``hi``; early rows of
    the basis ``leave_one_out`` are kept, because the fixed basis was fitted on early checkpoints.
    """
    rows = frames.pick(
        frames.table(tables, "energy"),
        quantity=options.get("quantity", "gradient"),
        method=options.get("method", "pca"),
        null_space=options.get("null_space", "complement"),
        phase=["early", "late"],
    )
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    rows = rows[(rows["basis"] != "leave_one_out") | (rows["phase"] == "early")]
    shown = [frames.pick(m, site=list(options.get("sites") or _spread(m))) for _, m in rows.groupby("model")]
    rows = pd.concat(shown) if shown else rows
    means = frames.geometric_mean(frames.ratios(rows), KEYS).assign(reason="")
    keys = [k for k in KEYS if k != "seed"]
    return frames.over_seeds(means, keys, "ratio", log=True)


def _spread(rows: pd.DataFrame) -> list[str]:
    return frames.spread(frames.sites_in_order(rows), 8)


@figure("early_late")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per basis (fixed, moving); the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    most = max([drawn[drawn["model"] == m]["site"].nunique() for m in models], default=1)
    with style.style(options):
        size = max(len(models), 1), len(PANELS)
        fig, axes = style.grid(*size, inches=style.width(options), row_height=0.62 + 0.2 * most)
        for i, model in enumerate(models):
            here = drawn[drawn["model"] == model]
            sites = frames.sites_in_order(here)
            for j, basis in enumerate(PANELS):
                ax = axes[i][j]
                _panel(ax, frames.pick(here, basis=[basis, *(["leave_one_out"] if basis == "fixed" else [])]), sites)
                style.letter(ax, 2 * i + j, f"{model}, {PANELS[basis]}")
                ax.set_yticks(range(len(sites)), sites if j == 0 else [])
                ax.set_ylim(-0.6, max(len(sites), 1) - 0.4)
                ax.tick_params(axis="y", length=0)
        if not models:
            style.absent(axes[0][0], "no rows")
        _scales(axes, drawn)
        for ax in axes[-1]:
            wide = style.wide(options)
            ax.set_xlabel("gradient energy, tangent over matched normal (ratio, log)" if wide else "energy ratio (log)")
        _legend(fig, drawn, options)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame, sites: list[str]) -> None:
    ax.axvline(1, color=style.MUTED, lw=0.6, zorder=0)
    if rows["ratio"].isna().all():
        style.absent(ax, "no early or late checkpoint")
        return
    for y, site in enumerate(sites):
        here = rows[rows["site"] == site]
        ends = {p: here[(here["phase"] == p) & (here["basis"] != "leave_one_out")] for p in ("early", "late")}
        if all(len(e) for e in ends.values()):
            x = [float(ends[p]["ratio"].iloc[0]) for p in ("early", "late")]
            ax.plot(x, [y + OFFSET, y - OFFSET], color=style.MUTED, lw=0.7, zorder=1)
        _points(ax, ends["early"], y + OFFSET, color=style.COOL, marker="o", mfc="white")
        _points(ax, ends["late"], y - OFFSET, color=style.ACCENT, marker="o")
        left_out = here[here["basis"] == "leave_one_out"]
        _points(ax, left_out, y, color=style.COOL, marker="D", ms=2.4, mfc="white", alpha=0.75)


def _points(ax: Axes, rows: pd.DataFrame, y: float, *, color: str, **look: Any) -> None:
    ax.hlines(np.full(len(rows), y), rows["lo"], rows["hi"], color=color, lw=1.0, zorder=2, alpha=look.get("alpha"))
    ax.plot(rows["ratio"], np.full(len(rows), y), ls="none", color=color, mew=0.8, zorder=3, **look)


def _scales(axes: Any, drawn: pd.DataFrame) -> None:
    finite = drawn[["ratio", "lo", "hi"]].to_numpy(float)
    finite = finite[np.isfinite(finite) & (finite > 0)]
    for ax in axes.flat:
        ax.set_xlim(min(finite.min(initial=1.0), 0.9) / 1.15, max(finite.max(initial=2.0), 2.0) * 1.15)
        style.decades(ax, which="x")


def _legend(fig: Figure, drawn: pd.DataFrame, options: Options) -> None:
    from matplotlib.lines import Line2D

    early: dict[str, Any] = {"color": style.COOL, "mfc": "white", "ls": "none", "mew": 0.8}
    handles = [
        Line2D([], [], marker="o", label=f"early (progress ≤ {options.get('early_fraction', 0.3):g})", **early),
        Line2D(
            [],
            [],
            marker="o",
            ls="none",
            color=style.ACCENT,
            label=f"late (progress ≥ {options.get('late_fraction', 0.7):g})",
        ),
    ]
    if "leave_one_out" in set(drawn["basis"]):
        label = "early, basis fitted without that checkpoint"
        handles.append(Line2D([], [], marker="D", ms=2.4, label=label, **early))
    note = [
        Line2D([], [], color=style.INK, lw=1.0, label=style.interval_name(drawn, options)),
        Line2D([], [], color=style.MUTED, lw=0.6, label="1: as much as a random normal subspace"),
    ]
    style.legend(fig, [handles, note])
