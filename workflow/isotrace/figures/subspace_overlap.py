"""Overlap of each checkpoint's own tangent basis with the fixed one and with the one before, over training.
The fixed basis of early training is Bernas et al. 2026; overlaps and the Haar reference are our choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrace.figures import frames, marks, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "comparison", "site", "layer", "checkpoint", "step", "status"]
LABELS = {
    "moving_to_fixed": "overlap with the fixed basis\n(mean squared cosine)",
    "neighbours": "overlap with the one before\n(mean squared cosine)",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from table ``subspaces``: one row per model, comparison, site and checkpoint.

    Options: ``rank`` (8), ``method`` ("pca"), ``sites`` (at most six, evenly spaced over depth). ``overlap`` is the
    mean squared cosine of the principal angles; ``null_lo``, ``null_hi`` are those of a Haar subspace, its exact mean
    and two standard deviations to either side; ``lo`` and ``hi`` the range over seeds, empty for one run.
    """
    table = frames.every_checkpoint(tables, "subspaces")
    rows = frames.pick(table, comparison=list(LABELS), method=options.get("method", "pca"))
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    shown = [frames.pick(m, site=_sites(m, options)) for _, m in rows.groupby("model")]
    rows = frames.with_tombstones(pd.concat(shown) if shown else rows, table, line=["comparison", "site", "layer"])
    spread = 2 * rows["haar_sd"]
    rows = rows.assign(
        lo=float("nan"), hi=float("nan"), low=rows["haar_mean"] - spread, high=rows["haar_mean"] + spread
    )
    points = frames.over_seeds(rows, KEYS, "overlap")
    band = rows.groupby(KEYS, as_index=False).agg(null_lo=("low", "min"), null_hi=("high", "max"))
    return points.merge(band, on=KEYS, how="left", validate="one_to_one")


def _sites(rows: pd.DataFrame, options: Options) -> list[str]:
    return list(options.get("sites") or frames.spread(frames.sites_in_order(rows), 6))


@figure("subspace_overlap")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A column of panels per model, a row per comparison; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    kinds = [k for k in LABELS if k in set(drawn["comparison"])] or list(LABELS)[:1]
    columns = max(min(len(models), 4 if style.wide(options) else 2), 1)
    bands = -(-max(len(models), 1) // columns)
    with style.style(options):
        fig, axes = style.grid(bands * len(kinds), columns, inches=style.width(options), row_height=1.45)
        axis = steps.StepAxis.of(drawn["step"])
        for ax in axes.flat:
            ax.set_visible(False)
        for i, model in enumerate(models):
            for j, kind in enumerate(kinds):
                ax = axes[(i // columns) * len(kinds) + j][i % columns]
                _panel(ax, frames.pick(drawn, model=model, comparison=kind), drawn[drawn["model"] == model], axis)
                style.letter(ax, j * len(models) + i, model)
                axis.apply(ax, label="training step" if j == len(kinds) - 1 else None)
                if i % columns == 0:
                    ax.set_ylabel(LABELS[kind])
        if not models:
            axes[0][0].set_visible(True)
            style.absent(axes[0][0], "no rows")
        _legend(fig, drawn, models)
    return fig, drawn


def _looks(rows: pd.DataFrame) -> dict[str, tuple[str, str]]:
    """Colour and marker of each site, by depth."""
    sites = frames.sites_in_order(rows)
    return {
        s: (colour, style.marker(k)) for k, (s, colour) in enumerate(zip(sites, style.ramp(len(sites)), strict=True))
    }


def _panel(ax: Axes, rows: pd.DataFrame, of_model: pd.DataFrame, axis: steps.StepAxis) -> None:
    ax.set_visible(True)
    ax.set_ylim(0, 1.04)
    band = rows.groupby("step", as_index=False).agg(lo=("null_lo", "min"), hi=("null_hi", "max"))
    for part in steps.parts(axis, band):
        ax.fill_between(part.x, part.rows["lo"].clip(lower=0), part.rows["hi"], color=style.BAND, lw=0, zorder=0)
    if rows["overlap"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    for site, (colour, marker) in _looks(of_model).items():
        line = rows[rows["site"] == site].rename(columns={"overlap": "value"})
        steps.line(ax, axis, line, color=colour, marker=marker)


def _legend(fig: Figure, drawn: pd.DataFrame, models: list[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    groups: list[list[Any]] = []
    by_sites: dict[tuple[str, ...], list[str]] = {}
    for model in models:
        by_sites.setdefault(tuple(frames.sites_in_order(drawn[drawn["model"] == model])), []).append(model)
    for owners in by_sites.values():
        lead = f"{', '.join(owners)}: " if len(by_sites) > 1 else ""
        looks = _looks(drawn[drawn["model"] == owners[0]])
        groups.append([
            Line2D([], [], color=colour, marker=marker, label=(lead if k == 0 else "") + site.replace("_", " "))
            for k, (site, (colour, marker)) in enumerate(looks.items())
        ])  # fmt: skip
    shades = [Patch(color=style.BAND, lw=0, label="random subspaces, ±2 sd (exact)")]
    if drawn["lo"].notna().any():
        shades.append(Patch(color=style.COOL, alpha=0.25, lw=0, label="range over seeds"))
    style.legend(fig, [*groups, [*shades, *marks.handles(drawn, "overlap")]])
