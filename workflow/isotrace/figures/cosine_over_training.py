"""Mean cosine between hidden states, and the drift of their mean, over training at every depth.
Godey et al. 2024 (mean cosine over training); norm drift |mean h| / mean |h| beside it is our choice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrace.figures import frames, marks, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "metric", "site", "layer", "checkpoint", "step", "status"]
LABELS = {
    "mean_cosine": "mean cosine\n(1 = all one direction)",
    "mean_cosine_centred": "mean cosine,\ncentred",
    "norm_drift": "norm drift\n|mean h| / mean |h|",
    "angular_distance": "mean angle",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``geometry``: one row per model, metric, site and checkpoint.

    Options: ``metrics`` (["mean_cosine", "norm_drift"]), ``quantity`` ("activation"), ``sites`` (at most six, evenly
    spaced over depth, embedding and final norm among them). ``value`` is the mean over buckets; ``lo`` and ``hi``
    are the means of the buckets' limits, as if all erred together (NaN where a bucket has none).
    """
    metrics = list(options.get("metrics", ["mean_cosine", "norm_drift"]))
    quantity = options.get("quantity", "activation")
    table = frames.every_checkpoint(tables, "geometry")
    rows = frames.pick(table, quantity=quantity, metric=metrics)
    shown = []
    for _, model in rows.groupby("model"):
        sites = options.get("sites") or frames.spread(frames.sites_in_order(model), 6)
        shown.append(frames.pick(model, site=list(sites)))
    rows = pd.concat(shown) if shown else rows
    rows = frames.with_tombstones(rows, table, line=["metric", "site", "layer", "bucket"])
    over_buckets = rows.groupby([*KEYS, "seed"], as_index=False, dropna=False).agg(
        value=("value", "mean"),
        lo=("lo", frames.mean_of_all),
        hi=("hi", frames.mean_of_all),
        reason=("reason", "first"),
    )
    return frames.over_seeds(over_buckets, KEYS, "value")


@figure("cosine_over_training")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A column of panels per model, a row per metric; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    metrics = [m for m in options.get("metrics", ["mean_cosine", "norm_drift"]) if m in set(drawn["metric"])]
    columns = max(min(len(models), 4 if style.wide(options) else 2), 1)
    size = -(-max(len(models), 1) // columns) * max(len(metrics), 1), columns
    with style.style(options):
        fig, axes = style.grid(*size, inches=style.width(options), row_height=1.45)
        axis = steps.StepAxis.of(drawn["step"])
        for ax in axes.flat:
            ax.set_visible(False)
        for i, model in enumerate(models):
            for j, metric in enumerate(metrics):
                ax = axes[(i // columns) * len(metrics) + j][i % columns]
                ax.set_visible(True)
                here = frames.pick(drawn, model=model, metric=metric)
                _panel(ax, here, _looks(drawn[drawn["model"] == model]), axis)
                band, column = divmod(i, columns)
                before = band * len(metrics) * columns + j * min(columns, len(models) - band * columns)
                style.letter(ax, before + column, model)
                axis.apply(ax, label="training step" if j == len(metrics) - 1 else None)
                if i % columns == 0:
                    ax.set_ylabel(LABELS.get(metric, metric.replace("_", " ")))
        if not models:
            axes[0][0].set_visible(True)
            style.absent(axes[0][0], "no rows")
        _share_scales(axes, metrics)
        _legend(fig, drawn, models, options)
    return fig, drawn


def _looks(rows: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Colour and marker of each site, by depth; the final norm in black, because there the paper looks."""
    sites = frames.sites_in_order(rows)
    colours = style.ramp(len(sites))
    looks = {s: (colours[k], style.marker(k)) for k, s in enumerate(sites)}
    return looks | {s: (style.ACCENT, "*") for s in sites if s == "final_norm"}


def _panel(ax: Axes, rows: pd.DataFrame, looks: Mapping[str, tuple[str, str]], axis: steps.StepAxis) -> None:
    ax.axhline(0, color=style.MUTED, lw=0.6, zorder=0)
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    for site, (colour, marker) in looks.items():
        thick: dict[str, Any] = {"lw": 1.6, "ms": 5.5} if site == "final_norm" else {}
        steps.line(ax, axis, rows[rows["site"] == site], color=colour, marker=marker, **thick)


def _share_scales(axes: Any, metrics: list[str]) -> None:
    """One value scale per metric, so that models can be compared by eye."""
    grid = list(axes)
    for j in range(len(metrics)):
        same = [ax for k, row in enumerate(grid) if k % len(metrics) == j for ax in row if ax.get_visible()]
        low, high = (pick(ax.get_ylim()[k] for ax in same) for k, pick in ((0, min), (1, max)))
        for ax in same:
            ax.set_ylim(low, high)
            ax.tick_params(labelleft=ax.get_subplotspec().is_first_col())


def _legend(fig: Figure, drawn: pd.DataFrame, models: list[str], options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    groups: list[list[Any]] = []
    by_sites: dict[tuple[str, ...], list[str]] = {}
    for model in models:
        by_sites.setdefault(tuple(frames.sites_in_order(drawn[drawn["model"] == model])), []).append(model)
    for sites, owners in by_sites.items():
        looks = _looks(drawn[drawn["model"] == owners[0]])
        lead = f"{', '.join(owners)}: " if len(by_sites) > 1 else ""
        groups.append([
            Line2D([], [], color=looks[s][0], marker=looks[s][1], label=(lead if k == 0 else "") + s.replace("_", " "))
            for k, s in enumerate(sites)
        ])  # fmt: skip
    label = f"{style.interval_name(drawn, options)}; mean over {style.bucket_kind(options)} buckets"
    shade = [Patch(color=style.COOL, alpha=0.25, lw=0, label=label)] if drawn["lo"].notna().any() else []
    groups.append([*shade, *marks.handles(drawn, "value")])
    style.legend(fig, groups)
