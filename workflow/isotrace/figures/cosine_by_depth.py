"""Mean cosine between hidden states by depth: one line a checkpoint, untrained models in grey.
Godey et al. 2024 (cosine over layers of trained and untrained models); the colour order is our choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrace.figures import frames, marks, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "checkpoint", "step", "status", "site", "layer"]
LINES = 8


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from tables ``geometry`` and, if given, ``untrained``: one row per model, checkpoint and site.

    Options: ``metric`` ("mean_cosine"), ``quantity`` ("activation"). ``value`` is the mean over buckets, ``lo`` and
    ``hi`` the means of their limits; of runs of a group, the mean over runs and their range. All untrained checkpoints
    are kept, of the trained ones at most eight, evenly spaced over those stored.
    """
    wanted = {"metric": options.get("metric", "mean_cosine"), "quantity": options.get("quantity", "activation")}
    table = frames.every_checkpoint(tables, "geometry")
    rows = frames.with_tombstones(frames.pick(table, **wanted), table, line=["site", "layer", "bucket"])
    rows = pd.concat([rows, *_drawn(tables, wanted)], ignore_index=True)
    rows = rows.groupby([*KEYS, "seed"], as_index=False, dropna=False).agg(
        value=("value", "mean"),
        lo=("lo", frames.mean_of_all),
        hi=("hi", frames.mean_of_all),
        reason=("reason", "first"),
    )
    drawn = frames.over_seeds(rows, KEYS, "value")
    kept = [part[_shown(part)] for _, part in drawn.groupby("model")]
    return pd.concat(kept, ignore_index=True).sort_values(["model", "step", "checkpoint", "layer"]) if kept else drawn


def _drawn(tables: Tables, wanted: dict[str, Any]) -> list[pd.DataFrame]:
    """Untrained models beside the series' own step 0, each as a checkpoint at step 0 named for its draw; or nothing."""
    if "untrained" not in tables or wanted["quantity"] != "activation":
        return []
    rows = frames.pick(tables["untrained"], metric=wanted["metric"])
    return [rows.assign(checkpoint="untrained-" + rows["draw"].astype(str), step=0, status="ok")] if len(rows) else []


def _shown(rows: pd.DataFrame) -> pd.Series:
    """Which rows of one model are drawn: some checkpoints by lines, copies and broken ones all, by marks."""
    chosen = [0, *(int(s) for s in frames.spread([str(s) for s in _trained(rows)], LINES))]
    return rows["step"].isin(chosen) | (rows["status"] != "ok")


def _trained(rows: pd.DataFrame) -> list[int]:
    """The steps after 0 that a line is drawn for."""
    return sorted({int(s) for s in marks.own(rows)["step"] if s > 0})


@figure("cosine_by_depth")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A panel per model; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    columns = max(min(len(models), 3 if style.wide(options) else 1), 1)
    with style.style(options):
        fig, axes = style.grid(-(-max(len(models), 1) // columns), columns, inches=style.width(options), row_height=2.0)
        for ax in axes.flat[max(len(models), 1) :]:
            ax.set_visible(False)
        for i, (model, ax) in enumerate(zip(models, axes.flat, strict=False)):
            _panel(ax, frames.pick(drawn, model=model))
            style.letter(ax, i, model)
            ax.set_xlabel("site, by depth (blocks numbered)")
            if i % columns == 0:
                ax.set_ylabel("mean cosine\n(1 = all one direction)")
        if not models:
            style.absent(axes.flat[0], "no rows")
        _share_scale([ax for ax in axes.flat if ax.get_visible()])
        _legend(fig, drawn, options)
    return fig, drawn


def _panel(ax: Axes, rows: pd.DataFrame) -> None:
    sites = frames.sites_in_order(rows)
    ax.axhline(0, color=style.MUTED, lw=0.6, zorder=0)
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    at = {site: k for k, site in enumerate(sites)}
    names = [s.replace("block.", "").replace("_", " ") for s in sites]
    shown = frames.spread([str(k) for k in range(len(sites))], 9)
    ax.set_xticks([int(k) for k in shown], [names[int(k)] for k in shown], rotation=40, ha="right")
    for _, line in marks.own(rows).groupby(["step", "checkpoint"], sort=True):
        here = line.sort_values("layer")
        x = [at[site] for site in here["site"]]
        look = _look(rows, int(here["step"].iloc[0]))
        ax.plot(x, here["value"], **look)
        ax.fill_between(x, here["lo"], here["hi"], color=look["color"], alpha=0.14, lw=0)
    _beside(ax, rows, at)


def _beside(ax: Axes, rows: pd.DataFrame, at: dict[str, int]) -> None:
    """Hollow marks of checkpoints that are no measurement of their own: copies at their values, broken ones below."""
    copies = rows[(rows["status"] == "duplicate") & rows["value"].notna()]
    if len(copies):
        ax.plot([at[site] for site in copies["site"]], copies["value"], color=style.INK, zorder=3, **marks.COPY)
    if (rows["status"] == "broken").any():
        foot = dict.fromkeys(at.values(), 0.0)
        where = ax.get_xaxis_transform()
        ax.plot(list(foot), list(foot.values()), transform=where, clip_on=False, zorder=11, **marks.BROKEN)


def _look(rows: pd.DataFrame, step: int) -> dict[str, Any]:
    """Colour and marker of a checkpoint: by its order in training, grey where there was none."""
    trained = _trained(rows)
    if step == 0:
        return {"color": style.MUTED, "marker": "x", "ls": "--", "ms": 3}
    k = trained.index(step)
    return {"color": style.ramp(len(trained))[k], "marker": style.marker(k)}


def _share_scale(axes: list[Any]) -> None:
    low, high = min(ax.get_ylim()[0] for ax in axes), max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(low, high)


def _legend(fig: Figure, drawn: pd.DataFrame, options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    groups: list[list[Any]] = []
    by_steps: dict[tuple[int, ...], list[str]] = {}
    for model in frames.in_order(drawn["model"]):
        steps = tuple(sorted({int(s) for s in marks.own(frames.pick(drawn, model=model))["step"]}))
        by_steps.setdefault(steps, []).append(model)
    for steps, owners in by_steps.items():
        rows = frames.pick(drawn, model=owners[0])
        lead = f"{', '.join(owners)}: " if len(by_steps) > 1 else ""
        names = ["untrained" if s == 0 else f"step {style.short(s)}" for s in steps]
        groups.append([
            Line2D([], [], label=(lead if k == 0 else "") + name, **_look(rows, s))
            for k, (s, name) in enumerate(zip(steps, names, strict=True))
        ])  # fmt: skip
    label = f"{style.interval_name(drawn, options)}; mean over {style.bucket_kind(options)} buckets"
    shade = [Patch(color=style.COOL, alpha=0.25, lw=0, label=label)] if drawn["lo"].notna().any() else []
    style.legend(fig, [*groups, [*shade, *marks.handles(drawn, "value")]])
