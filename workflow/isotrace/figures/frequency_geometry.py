"""Does token frequency order the norms and the distances to the centroid: rank correlations over training.
Bernas et al. 2026 (frequent tokens are shorter and nearer to the centroid); the scatter is of the latest checkpoint."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "of", "kind", "site", "layer", "checkpoint", "step", "status"]
OF = {"norm": "norm", "centroid_distance": "distance"}
SCATTER = {
    "norm": "embedding's norm\n(model's units)",
    "centroid_distance": "distance to the centroid\n(model's units)",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """What is drawn: ``part`` "correlation" (one row per model, of, kind, site, checkpoint) and "points" (a token).

    Needs table ``frequency``; ``frequency_points`` (model, step, token_id, count, norm, centroid_distance) is
    optional and adds the scatter of each model's latest step. Options: ``sites`` of the contextual kind (first and
    last block, final norm). Correlations carry ``spearman``, ``lo``, ``hi``, ``reason``.
    """
    table = frames.every_checkpoint(tables, "frequency")
    rows = frames.pick(table, of=list(OF))
    shown = []
    for _, model in rows.groupby("model"):
        static = model[model["kind"] == "static"]
        contextual = model[model["kind"] == "contextual"]
        sites = options.get("sites") or [*frames.end_blocks(contextual, {}), "final_norm"]
        shown += [static, frames.pick(contextual, site=list(sites))]
    rows = pd.concat(shown) if shown else rows
    rows = frames.with_tombstones(rows, table, line=["of", "kind", "site", "layer"])
    lines = frames.over_seeds(rows, KEYS, "spearman").assign(part="correlation")
    points = _points(tables)
    return lines if points.empty else pd.concat([lines, points.assign(part="points")], ignore_index=True)


def _points(tables: Tables) -> pd.DataFrame:
    """One late checkpoint a model; of several seeds the first, for a cloud of two seeds is no average."""
    points = marks.own(marks.with_status(tables.get("frequency_points", pd.DataFrame())))
    if points.empty:
        return points
    columns = ["model", "step", "status", "token_id", "count", "norm", "centroid_distance"]
    if "seed" in points:
        points = points[points["seed"] == points.groupby("model")["seed"].transform("min")]
    return points.loc[points["step"] == points.groupby("model")["step"].transform("max"), columns]


@figure("frequency_geometry")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model: correlations over training and, where given, the scatter, for norm and distance."""
    drawn = data(tables, options)
    lines, points = drawn[drawn["part"] == "correlation"], drawn[drawn["part"] == "points"]
    models = frames.in_order(drawn["model"])
    kinds = [(of, part) for of in OF for part in (("points", "correlation") if len(points) else ("correlation",))]
    columns = len(kinds) if style.wide(options) else 2
    with style.style(options):
        rows = max(len(models), 1) * len(kinds) // columns
        fig, axes = style.grid(rows, columns, inches=style.width(options), row_height=1.5)
        axis = steps.StepAxis.of(lines["step"])
        for index, (model, (of, part)) in enumerate(product(models, kinds)):
            ax = axes.flat[index]
            last = index >= len(models) * len(kinds) - columns
            if part == "points":
                _scatter(ax, points[points["model"] == model], of, last=last)
            else:
                _correlations(ax, frames.pick(lines, model=model, of=of), axis, last=last)
            style.letter(ax, index, f"{model}, {OF[of]}")
        if not models:
            style.absent(axes[0][0], "no rows")
        _legend(fig, lines, options, scatter=len(points) > 0)
    return fig, drawn


def _scatter(ax: Axes, points: pd.DataFrame, of: str, *, last: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    ax.set_ylabel(SCATTER[of])
    if last:
        ax.set_xlabel("token count (occurrences, log)")
    if points.empty:
        style.absent(ax, "no points given")
        return
    shades = LinearSegmentedColormap.from_list("ink", ["#c6d5e8", "#27538f", "#0b1730"])
    ax.hexbin(
        points["count"],
        points[of],
        xscale="log",
        gridsize=22,
        bins="log",
        mincnt=1,
        cmap=shades,
        lw=0.1,
        rasterized=True,
    )
    x, y = _running_median(points["count"].to_numpy(float), points[of].to_numpy(float))
    ax.plot(x, y, color=style.ACCENT, lw=1.4)
    style.decades(ax, which="x")
    ax.text(0.97, 0.95, f"step {int(points['step'].iloc[0])}", transform=ax.transAxes, ha="right", va="top", size=6)


def _running_median(count: np.ndarray, value: np.ndarray, *, bins: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Medians of ``value`` (n,) in at most ``bins`` equally filled bins of ``count`` (n,), at the bins' medians."""
    chunks = np.array_split(np.argsort(count, kind="stable"), min(bins, len(count)))
    return np.array([np.median(count[c]) for c in chunks]), np.array([np.median(value[c]) for c in chunks])


def _correlations(ax: Axes, rows: pd.DataFrame, axis: steps.StepAxis, *, last: bool) -> None:
    ax.axhline(0, color=style.MUTED, lw=0.6, zorder=0)
    ax.set_ylim(-1.05, 1.05)
    ax.set_yticks([-1, -0.5, 0, 0.5, 1], ["-1", "-0.5", "0", "0.5", "1"])
    ax.set_ylabel("rank correlation with\ntoken count (Spearman)")
    axis.apply(ax, label="training step" if last else None)
    if rows["spearman"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))) or "no rows")
        return
    for key, look in _looks(rows).items():
        line = rows[(rows["kind"] == key[0]) & (rows["site"] == key[1])]
        steps.line(ax, axis, line.rename(columns={"spearman": "value"}), **look)


def _looks(rows: pd.DataFrame) -> dict[tuple[str, str], dict[str, Any]]:
    contextual = frames.sites_in_order(rows[rows["kind"] == "contextual"]) if len(rows) else []
    colours = style.ramp(len(contextual) + 1)[1:]
    looks: dict[tuple[str, str], dict[str, Any]] = {}
    for site in frames.sites_in_order(rows[rows["kind"] == "static"]):
        looks["static", site] = {"color": style.INK, "marker": "o", "lw": 1.4}
    for k, site in enumerate(contextual):
        looks["contextual", site] = {"color": colours[k], "marker": style.marker(k + 1), "ls": (0, (4, 1.2))}
    return looks


def _legend(fig: Figure, lines: pd.DataFrame, options: Options, *, scatter: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    names = {"static": "input embedding", "contextual": "contextual, "}
    handles = [
        Line2D([], [], label=names[kind] + (site.replace("_", " ") if kind == "contextual" else ""), **look)
        for (kind, site), look in _looks(lines).items()
    ]
    notes: list[Any] = []
    if scatter:
        notes.append(Line2D([], [], color=style.ACCENT, lw=1.4, label="median of tokens (shade: number of tokens)"))
    interval = style.interval_name(lines, options).replace("sequences", "token types")
    notes.append(Patch(color=style.COOL, alpha=0.25, lw=0, label=interval))
    notes += marks.handles(lines, "spearman")
    style.legend(fig, [handles, notes])
