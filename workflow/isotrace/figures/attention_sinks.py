"""Are frequent tokens sinks: attention that a bucket's keys receive over their share, and sharpness by query bucket.
Sinks after Xiao et al. 2024, sharpness after Godey et al. 2024; means over layers and heads are our choice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, panels, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "metric", "bucket", "checkpoint", "step", "status"]
REST = "none"
NEAR_ONE = (0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.5, 2, 2.5)
LABELS = {
    "mass_over_share": "attention received over\nshare of keys (ratio, log)",
    "sharpness": "sharpness of queries\n1 - entropy / log(visible)",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn: one row per model, metric, bucket and checkpoint, means over layers and heads.

    mass_over_share by key bucket, from ``attention_mass``: exp of the mean log ratio over all queries; bucket
    ``none`` is the keys of no bucket. sharpness by query bucket, from ``attention_intervals``: 1 - entropy over all
    visible keys. Bounds are means of bounds, as if all heads erred together.
    """
    mass = frames.every_checkpoint(tables, "attention_mass")
    sinks = frames.pick(mass, query_bucket="all").assign(bucket=lambda t: t["key_bucket"], value=mass["log_ratio"])
    whole = frames.every_checkpoint(tables, "attention_intervals")
    sharp = frames.pick(whole, column="entropy", key_bucket="all")
    sharp = sharp[sharp["query_bucket"] != "all"].assign(bucket=lambda t: t["query_bucket"])
    sharp = sharp.assign(value=1 - sharp["value"], lo=1 - sharp["hi"], hi=1 - sharp["lo"])
    parts = [_means(sinks, mass, "mass_over_share"), _means(sharp, whole, "sharpness")]
    rows = frames.over_seeds(pd.concat(parts, ignore_index=True), KEYS, "value")
    logs = rows["metric"] == "mass_over_share"
    rows.loc[logs, ["value", "lo", "hi"]] = np.exp(rows.loc[logs, ["value", "lo", "hi"]].astype(float))
    return rows


def _means(rows: pd.DataFrame, table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Means over the layers and heads that have a value; keys of no bucket are left out where there are none."""
    keys = ["model", "seed", "bucket", "checkpoint", "step", "status"]
    means = rows.groupby(keys, as_index=False, dropna=False).agg(
        value=("value", "mean"), lo=("lo", "mean"), hi=("hi", "mean"), reason=("reason", "max")
    )
    known = means.groupby(["model", "bucket"])["value"].transform("count") > 0
    kept = means[known | (means["bucket"] != REST)]
    return frames.with_tombstones(kept, table, line=["bucket"]).assign(metric=metric)


@figure("attention_sinks")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """Two panels a model: attention over share by key bucket, sharpness by query bucket; drawn as in ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    with style.style(options):
        axis = steps.StepAxis.of(drawn["step"])
        looks = _looks(drawn)

        def panel(ax: Axes, model: str, metric: str, last: bool) -> None:
            here = frames.pick(drawn, model=model, metric=metric)
            _panel(ax, here, looks, axis)
            _scale(ax, here, log=metric == "mass_over_share")
            ax.set_ylabel(LABELS[metric])
            axis.apply(ax, label="training step" if last else None)

        fig, axes = panels.by_measure(models, LABELS, options, panel, row_height=1.7)
        if not models:
            for ax in axes.flat:
                style.absent(ax, "no rows")
        _legend(fig, drawn, looks, options)
    return fig, drawn


def _looks(drawn: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Colour and marker of each bucket, most frequent first; keys of no bucket apart."""
    buckets = [b for b in frames.in_order(drawn["bucket"]) if b != REST]
    looks = {b: (c, style.marker(k)) for k, (b, c) in enumerate(zip(buckets, style.ramp(len(buckets)), strict=True))}
    return looks | ({REST: (style.ACCENT, "*")} if REST in set(drawn["bucket"]) else {})


def _panel(ax: Axes, rows: pd.DataFrame, looks: dict[str, tuple[str, str]], axis: steps.StepAxis) -> None:
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted({str(r) for r in rows["reason"]})) or "no rows")
        return
    for bucket, (colour, marker) in looks.items():
        steps.line(ax, axis, rows[rows["bucket"] == bucket], color=colour, marker=marker)


def _scale(ax: Axes, rows: pd.DataFrame, *, log: bool) -> None:
    """Wide enough that what is next to nothing looks like it: 0.8 to 1.25 times the share, 0 to 0.05 in sharpness."""
    found = rows[["value", "lo", "hi"]].to_numpy(float)
    top = float(np.nanmax(found, initial=1.25 if log else 0.05))
    if not log:
        ax.set_ylim(0, 1.05 * top)
        return
    ax.axhline(1, color=style.MUTED, lw=0.6, zorder=0)
    ax.set_ylim(float(np.nanmin(found, initial=0.8)) / 1.05, 1.05 * top)
    style.decades(ax)
    low, high = ax.get_ylim()
    if high < 4 * low:  # decades would label one tick or two
        ticks = [t for t in NEAR_ONE if low < t < high]
        ax.set_yticks(ticks, [f"{t:g}" for t in ticks])


def _legend(fig: Figure, drawn: pd.DataFrame, looks: dict[str, tuple[str, str]], options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    buckets = {b: colour for b, (colour, _) in looks.items() if b != REST}
    lines = style.bucket_handles(list(buckets), buckets, options) if buckets else []
    if REST in looks:
        lines.append(Line2D([], [], color=style.ACCENT, marker="*", label="keys of no bucket"))
    label = f"{style.interval_name(drawn, options)}; mean over layers and heads"
    shade = [Patch(color=style.COOL, alpha=0.25, lw=0, label=label)] if drawn["lo"].notna().any() else []
    style.legend(fig, [lines, [*shade, *marks.handles(drawn, "value")]])
