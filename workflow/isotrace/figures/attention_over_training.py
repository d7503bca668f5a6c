"""How far queries and keys drift off the origin, and how sharp attention becomes, over training by layer.
Godey et al. 2024 (drift |mean q| / mean |q| and sharpness); 1 - entropy / log(visible keys) is our choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, panels, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "metric", "layer", "checkpoint", "step", "status"]
LABELS = {
    "drift_q": "query drift\n|mean q| / mean |q|",
    "drift_k": "key drift\n|mean k| / mean |k|",
    "sharpness": "sharpness\n1 - entropy / log(visible)",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``attention``: one row per model, metric, layer and checkpoint.

    Metrics: drift_q, drift_k, sharpness (1 - entropy). Options: ``layers`` (at most six, evenly spaced). ``value``
    is the mean over heads; ``lo`` and ``hi`` are the lowest and highest head, a spread and not an error. Rows that
    are not split by bucket are used where there are any, else the mean over buckets.
    """
    table = frames.every_checkpoint(tables, "attention").assign(sharpness=lambda t: 1 - t["entropy"])
    parts = [_heads(table.dropna(subset=["layer"]), metric) for metric in LABELS]
    rows = pd.concat(parts, ignore_index=True)
    shown = []
    for _, model in rows.groupby("model"):
        every = sorted(model["layer"].unique())
        wanted = options.get("layers") or [int(n) for n in frames.spread([str(n) for n in every], 6)]
        shown.append(frames.pick(model, layer=list(wanted)))
    rows = pd.concat(shown) if shown else rows
    rows = frames.with_tombstones(rows, table, line=["metric", "layer", "head"])
    over_heads = rows.groupby([*KEYS, "seed"], as_index=False, dropna=False).agg(
        value=("value", "mean"), lo=("value", "min"), hi=("value", "max"), reason=("reason", "first")
    )
    return frames.over_seeds(over_heads, KEYS, "value").replace({"interval": {"within the run": "range over heads"}})


def _heads(table: pd.DataFrame, metric: str) -> pd.DataFrame:
    """``metric`` of each head as column ``value``, over all tokens."""
    keys = ["model", "seed", "checkpoint", "step", "status", "layer", "head"]
    whole = table[(table["query_bucket"] == "all") & (table["key_bucket"] == "all")]
    rows = whole if whole[metric].notna().any() or table[metric].isna().all() else table
    means = rows.groupby(keys, as_index=False, dropna=False).agg(value=(metric, "mean"), reason=("reason", "first"))
    return means.assign(metric=metric)


@figure("attention_over_training")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model: query drift, key drift, sharpness; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    with style.style(options):
        axis = steps.StepAxis.of(drawn["step"])

        def panel(ax: Axes, model: str, metric: str, last: bool) -> None:
            here = drawn[drawn["metric"] == metric]
            top = float(np.nanmax(here[["value", "hi"]].to_numpy(float), initial=0.05))
            _panel(ax, here[here["model"] == model], axis)
            ax.set_ylim(0, 1.05 * top)
            ax.set_ylabel(LABELS[metric])
            axis.apply(ax, label="training step" if last else None)

        fig, axes = panels.by_measure(models, LABELS, options, panel, row_height=1.5)
        if not models:
            reasons = frames.table(tables, "attention")["reason"]
            style.absent(axes[0][0], "; ".join(sorted(set(reasons))) or "no rows")
        _legend(fig, drawn, models)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame, axis: steps.StepAxis) -> None:
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted({str(r) for r in rows["reason"]})) or "no rows")
        return
    layers = sorted(rows["layer"].unique())
    for k, (layer, colour) in enumerate(zip(layers, style.ramp(len(layers)), strict=True)):
        steps.line(ax, axis, rows[rows["layer"] == layer], color=colour, marker=style.marker(k))


def _legend(fig: Figure, drawn: pd.DataFrame, models: list[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    by_layers: dict[tuple[int, ...], list[str]] = {}
    for model in models:
        layers = tuple(sorted(drawn.loc[drawn["model"] == model, "layer"].unique()))
        by_layers.setdefault(layers, []).append(model)
    groups: list[list[Any]] = []
    for layers, owners in by_layers.items():
        lead = f"{', '.join(owners)}: " if len(by_layers) > 1 else ""
        groups.append([
            Line2D([], [], color=c, marker=style.marker(k), label=f"{lead if k == 0 else ''}layer {n}")
            for k, (n, c) in enumerate(zip(layers, style.ramp(len(layers)), strict=True))
        ])  # fmt: skip
    kinds = " / ".join(sorted({str(k) for k in drawn["interval"] if k})) or "range over heads"
    shade = Patch(color=style.COOL, alpha=0.25, lw=0, label=f"{kinds} (line: mean over heads)")
    groups.append([shade, *marks.handles(drawn, "value")])
    style.legend(fig, groups)
