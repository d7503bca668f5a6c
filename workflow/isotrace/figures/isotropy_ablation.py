"""Isotropy of the last block's gradients: whole, without the tangent subspace, without matched normal subspaces.
Bernas et al. 2026 (ablation) with IsoScore (Rudman et al. 2022) and its size-corrected estimate (Chen et al. 2010)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "site", "layer", "bucket", "checkpoint", "step", "status"]
SCORES = ("score", "score_without_tangent", "score_without_normal_mean")


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``isotropy``: one row per model, bucket and checkpoint at the last block.

    Options: ``rank`` (8), ``method`` ("pca"), ``basis`` ("fixed"), ``quantity`` ("gradient"), ``estimator``
    ("corrected"), ``c0`` (only of estimator star: "scaled_identity"), ``convention`` ("complement"), ``outliers``
    ("kept"), ``null_space`` ("complement"), ``site`` (the last block), ``buckets`` (as many as fit, evenly spaced).
    Columns: the keys, the score of the whole with its interval ``lo``, ``hi``, the score without T, the score
    without a random normal subspace (mean, lowest, highest draw), ``above_every_draw``, ``reason``.
    """
    table = frames.every_checkpoint(tables, "isotropy")
    rows = frames.pick(
        table,
        quantity=options.get("quantity", "gradient"),
        basis=options.get("basis", "fixed"),
        method=options.get("method", "pca"),
        estimator=options.get("estimator", "corrected"),
        convention=options.get("convention", "complement"),
        outliers=options.get("outliers", "kept"),
        null_space=options.get("null_space", "complement"),
    )
    if options.get("estimator") == "star":
        rows = frames.pick(rows, c0=options.get("c0", "scaled_identity"))
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    last = [frames.pick(m, site=options.get("site", _last(m))) for _, m in rows.groupby("model")]
    most = max(2, int(style.width(options) / 1.6))
    shown = [frames.pick(m, bucket=list(options.get("buckets") or _spread(m, most))) for m in last]
    rows = pd.concat(shown) if shown else rows
    rows = frames.with_tombstones(rows, table, line=["site", "layer", "bucket"])
    return _over_seeds(rows).sort_values(["model", "bucket", "step", "checkpoint"], ignore_index=True)


def _spread(rows: pd.DataFrame, most: int) -> list[str]:
    """Buckets of one model, whose buckets may be its own."""
    return frames.spread(frames.in_order(rows["bucket"]), most)


def _last(rows: pd.DataFrame) -> str:
    return (frames.blocks(rows) or frames.sites_in_order(rows))[-1]


def _over_seeds(rows: pd.DataFrame) -> pd.DataFrame:
    whole = frames.over_seeds(rows.assign(lo=rows["score_lo"], hi=rows["score_hi"]), KEYS, "score")
    rows = rows.assign(above=rows["p_value"] <= 1.000001 / (rows["n_nulls"] + 1))
    rest = rows.groupby(KEYS, as_index=False).agg(
        score_without_tangent=("score_without_tangent", "mean"),
        score_without_normal_mean=("score_without_normal_mean", "mean"),
        score_without_normal_lo=("score_without_normal_lo", "min"),
        score_without_normal_hi=("score_without_normal_hi", "max"),
        above_every_draw=("above", "all"),
    )
    return whole.merge(rest, on=KEYS, validate="one_to_one")


@figure("isotropy_ablation")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per bucket; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    buckets = {str(model): frames.in_order(rows["bucket"]) for model, rows in drawn.groupby("model")}
    models = frames.in_order(drawn["model"])
    top = np.nanmax(drawn[[*SCORES, "hi", "score_without_normal_hi"]].to_numpy(float), initial=0.0)
    low = np.nanmin(drawn[[*SCORES, "lo"]].to_numpy(float), initial=0.0)
    with style.style(options):
        columns = max(map(len, buckets.values()), default=1)
        fig, axes = style.grid(max(len(models), 1), columns, inches=style.width(options), row_height=1.45)
        axis = steps.StepAxis.of(drawn["step"])
        places = [(i, j, model, b) for i, model in enumerate(models) for j, b in enumerate(buckets[model])]
        for ax in axes.flat:
            ax.set_axis_off()
        for k, (i, j, model, bucket) in enumerate(places):
            ax = axes[i][j]
            ax.set_axis_on()
            _panel(ax, frames.pick(drawn, model=model, bucket=bucket), axis)
            ax.set_ylim(low - 0.03 * (top - low), top + 0.06 * (top - low) if top > low else 1)
            style.letter(ax, k, _title(model, bucket, buckets[model]))
            axis.apply(ax, label="training step" if i == len(models) - 1 else None)
            ax.tick_params(labelleft=j == 0)
            ax.set_ylabel(f"gradient IsoScore\n({options.get('estimator', 'corrected')})" if j == 0 else "")
        if not models:
            style.absent(axes[0][0], "no rows")
        _legend(fig, drawn, options)
    return fig, drawn


def _title(model: str, bucket: str, buckets: list[str]) -> str:
    if len(buckets) == 1:
        return model if bucket == "all" else f"{model}, {bucket}"
    ends = {buckets[0]: " (frequent)", buckets[-1]: " (rare)"}
    return f"{model}, {bucket}{ends.get(bucket, '')}"


def _panel(ax: Axes, rows: pd.DataFrame, axis: steps.StepAxis) -> None:
    if rows[list(SCORES)].isna().all(axis=None):
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))) or "no rows")
        return
    for part in steps.parts(axis, marks.own(rows)):
        low, high = part.rows["score_without_normal_lo"], part.rows["score_without_normal_hi"]
        ax.fill_between(part.x, low, high, color=style.BAND, lw=0, zorder=0)
    normal = rows.rename(columns={"score_without_normal_mean": "value"})
    steps.line(ax, axis, normal, shade=False, color=style.MUTED, ls=":", lw=1.0)
    whole = rows.rename(columns={"score": "value"})
    steps.line(ax, axis, whole, color=style.COOL, marker="s", ls=(0, (4, 1.5)))
    without = rows.rename(columns={"score_without_tangent": "value"})
    steps.line(ax, axis, without, shade=False, color=style.ACCENT, marker="o", hollow=True)
    sure = marks.own(without[without["above_every_draw"]])
    ax.plot(axis.x(sure["step"]), sure["value"], color=style.ACCENT, marker="o", ls="none", mew=0.7)


def _legend(fig: Figure, drawn: pd.DataFrame, options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    red = style.ACCENT
    handles = [
        Line2D([], [], color=red, marker="o", label="without the tangent subspace, above every draw"),
        Line2D([], [], color=red, marker="o", mfc="white", label="not above every draw"),
    ]
    normal = [
        Line2D([], [], color=style.MUTED, ls=":", label="without a random normal subspace (mean)"),
        Patch(color=style.BAND, lw=0, label="all its draws"),
    ]
    whole = [
        Line2D([], [], color=style.COOL, ls=(0, (4, 1.5)), marker="s", label="whole"),
        Patch(color=style.COOL, alpha=0.25, lw=0, label=style.interval_name(drawn, options)),
    ]
    style.legend(fig, [handles, normal, [*whole, *marks.handles(drawn, "score")]])
