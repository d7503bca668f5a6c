"""Gradient energy in the tangent subspace against its null, over training, by bucket, at the ends of the model.
Bernas et al. 2026 (energy ratio of matched ranks); intervals, the exact null and the moving basis are our choice."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, panels, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "site", "layer", "basis", "bucket", "checkpoint", "step", "status"]
DASHES = {"fixed": "-", "moving": (0, (3, 1.5))}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``energy``: one row per model, site, basis, bucket and checkpoint.

    Options: ``rank`` (8), ``method`` ("pca"), ``quantity`` ("gradient"), ``null_space`` ("complement"), ``sites``
    (first and last block). Columns: the keys, ``ratio``, its interval ``lo``, ``hi`` and what that is, the null's
    band ``null_lo``, ``null_hi`` (1 +- 2 exact standard deviations) and a ``reason`` where there is no ratio;
    ``status`` says which checkpoints are copies of another or broken.
    """
    energy = frames.every_checkpoint(tables, "energy")
    rows = frames.pick(
        energy,
        quantity=options.get("quantity", "gradient"),
        method=options.get("method", "pca"),
        null_space=options.get("null_space", "complement"),
        basis=frames.BASES,
    )
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    wanted = [frames.pick(m, site=frames.end_blocks(m, options)) for _, m in rows.groupby("model")]
    rows = pd.concat(wanted) if wanted else rows
    rows = frames.ratios(frames.with_tombstones(rows, energy, line=["site", "layer", "basis", "bucket"]))
    rows = rows.assign(lo=rows["ratio_lo"], hi=rows["ratio_hi"])
    points = frames.over_seeds(rows, KEYS, "ratio", log=True)
    band = rows.groupby(KEYS, as_index=False).agg(null_lo=("null_lo", "min"), null_hi=("null_hi", "max"))
    return points.merge(band, on=KEYS, how="left", validate="one_to_one")


@figure("energy_over_training")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per site; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    buckets = frames.in_order(drawn["bucket"])
    colours = dict(zip(buckets, style.ramp(len(buckets)), strict=True))
    with style.style(options):
        axis = steps.StepAxis.of(drawn["step"])
        panel = partial(_panel, colours=colours, axis=axis)
        title = partial(_place, wide=style.wide(options))
        fig, axes = panels.by_site(drawn, options, panel, title=title)
        _scales(axes, drawn)
        for row in axes:
            row[0].set_ylabel("gradient energy, tangent over\nmatched normal (ratio, log)")
        _legend(fig, colours, drawn, options)
    return fig, drawn


def _place(sites: list[str], j: int, *, wide: bool) -> str:
    if len(sites) == 2 and all(s.startswith("block.") for s in sites):
        return f"{('first', 'last')[j]} block" + (f" ({sites[j]})" if wide else "")
    return sites[j].replace("_", " ")


def _panel(ax: Axes, rows: pd.DataFrame, last: bool, *, colours: Mapping[str, Any], axis: steps.StepAxis) -> None:
    axis.apply(ax, label="training step" if last else None)
    band = marks.own(rows).groupby("step", as_index=False).agg(lo=("null_lo", "min"), hi=("null_hi", "max"))
    for part in steps.parts(axis, band):
        ax.fill_between(part.x, np.maximum(part.rows["lo"], 1e-3), part.rows["hi"], color=style.BAND, lw=0, zorder=0)
    ax.axhline(1, color=style.MUTED, lw=0.6, zorder=1)
    if rows["ratio"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    for (bucket, basis), line in rows.groupby(["bucket", "basis"], sort=False):
        steps.line(
            ax, axis, line.rename(columns={"ratio": "value"}), color=colours[str(bucket)], ls=DASHES[str(basis)],
            marker=style.marker(list(colours).index(str(bucket))), hollow=basis == "moving",
        )  # fmt: skip


def _scales(axes: Any, drawn: pd.DataFrame) -> None:
    """One logarithmic scale for all panels, so that models and depths can be compared by eye."""
    finite = drawn[["ratio", "lo", "hi"]].to_numpy(float)
    finite = finite[np.isfinite(finite) & (finite > 0)]
    band = drawn["null_hi"].to_numpy(float)
    top = float(max(finite.max(initial=2.0), np.nanmax(band, initial=1.0))) * 1.3
    low = float(min(finite.min(initial=1.0), 0.8)) / 1.2
    for ax in axes.flat:
        ax.set_ylim(low, top)
        style.decades(ax)
        if ax not in axes[:, 0]:
            ax.tick_params(labelleft=False)


def _legend(fig: Figure, colours: Mapping[str, str], drawn: pd.DataFrame, options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {"fixed": "fixed basis (from early training)", "moving": "moving basis (each checkpoint's own)"}
    fill = {"fixed": style.INK, "moving": "white"}
    bases = [
        Line2D([], [], color=style.INK, ls=DASHES[b], marker="o", mfc=fill[b], label=names[b])
        for b in frames.BASES
        if b in set(drawn["basis"])
    ]
    shades = [
        Patch(color=style.COOL, alpha=0.25, lw=0, label=style.interval_name(drawn, options)),
        Patch(color=style.BAND, lw=0, label="random normal subspaces, ±2 sd (exact)"),
        *marks.handles(drawn, "ratio"),
    ]
    style.legend(fig, [style.bucket_handles(list(colours), colours, options), bases, shades])
