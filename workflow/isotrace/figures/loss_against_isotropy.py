"""Held-out loss against isotropy of the last activations: one line a model through training, its end apart.
Which design moves anisotropy, and at what cost: Rudman and Eickhoff 2024 ask it of a regulariser; the plot is ours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RUN = ["model", "seed", "checkpoint", "step", "status"]
KEYS = ["model", "checkpoint", "step", "status", "site"]
SCORE, LOSS = "isotropy", "loss"
LABELS = {SCORE: "isotropy of the last activations\n(IsoScore, 0 to 1)", LOSS: "held-out loss (nats a token)"}
LIMITS = [f"{name}_{end}" for name in (SCORE, LOSS) for end in ("lo", "hi")]


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from tables ``isotropy`` and ``geometry``: one row per model and checkpoint.

    Options: ``estimator`` ("corrected"), ``outliers`` ("kept"). ``isotropy`` is that of activations at the deepest
    site, ``loss`` in nats a target, both held out and means over the same buckets: those (``buckets``: how many) that
    have both at every checkpoint of their run, for a mean over changing buckets would move by itself. Limits are means
    of the buckets' limits. ``last`` marks the end of training: the last sound checkpoint with both values.
    """
    cells = _cells(tables, options)
    means = cells.groupby([*RUN, "site"], as_index=False, dropna=False).agg(
        **{name: (name, frames.mean_of_all) for name in (SCORE, LOSS, *LIMITS)},
        buckets=("bucket", "nunique"),
        reason=("reason", _first_reason),
    )
    drawn = _over_seeds(means, SCORE).merge(_over_seeds(means, LOSS).drop(columns=["seeds", "interval"]), on=KEYS)
    drawn["reason"] = drawn["reason_x"].where(drawn["reason_x"] != "", drawn["reason_y"])
    drawn = drawn.drop(columns=["reason_x", "reason_y"])
    drawn = drawn.merge(means.groupby(KEYS, as_index=False)["buckets"].min(), on=KEYS)
    usable = (drawn["status"] == "ok") & drawn[[SCORE, LOSS]].notna().all(axis=1)
    ends = drawn["step"].where(usable).groupby(drawn["model"]).transform("max")
    drawn["last"] = usable & (drawn["step"] == ends)
    return drawn.sort_values(["model", "step", "checkpoint"], ignore_index=True)


def _cells(tables: Tables, options: Options) -> pd.DataFrame:
    """One row a run, checkpoint and bucket with both values, of the buckets that a run has throughout."""
    wanted = {"estimator": options.get("estimator", "corrected"), "outliers": options.get("outliers", "kept")}
    scores = frames.pick(frames.every_checkpoint(tables, "isotropy"), quantity="activation", **wanted)
    scores = _deepest(scores.rename(columns={"score": SCORE, "score_lo": "isotropy_lo", "score_hi": "isotropy_hi"}))
    losses = frames.pick(frames.every_checkpoint(tables, "geometry"), quantity="activation", metric="loss")
    losses = _deepest(losses.rename(columns={"value": LOSS, "lo": "loss_lo", "hi": "loss_hi"}), LOSS)
    cells = scores.merge(losses.drop(columns="site"), on=[*RUN, "bucket"], how="outer")
    given = [cells[name].fillna("") for name in ("reason_x", "reason_y")]
    cells["reason"] = given[0].where(given[0] != "", given[1])
    for name in (SCORE, LOSS):
        unsaid = cells[name].isna() & (cells["reason"] == "")
        cells.loc[unsaid, "reason"] = f"no {name} in the tables"
    cells["site"] = cells["site"].fillna("")
    gone = cells[[SCORE, LOSS]].isna().any(axis=1) & (cells["status"] == "ok")
    run = [cells[name].astype(str) for name in ("model", "seed")]
    throughout = ~gone.groupby([*run, cells["bucket"]]).transform("any")
    none = ~throughout.groupby(run).transform("any")
    return cells[throughout | none]


def _deepest(rows: pd.DataFrame, name: str = SCORE) -> pd.DataFrame:
    """A row a checkpoint and bucket, of each model's deepest site; what a score is repeated for falls away."""
    rows = rows[rows["site"] != ""]
    rows = rows[rows["layer"] == rows.groupby("model")["layer"].transform("max")]
    rows = rows.assign(gone=rows[name].isna()).sort_values("gone", kind="stable")
    kept = [*RUN, "bucket", "site", name, f"{name}_lo", f"{name}_hi", "reason"]
    return rows.drop_duplicates([*RUN, "bucket"])[kept]


def _first_reason(reasons: pd.Series) -> str:
    return min((str(reason) for reason in reasons if reason), default="")


def _over_seeds(means: pd.DataFrame, name: str) -> pd.DataFrame:
    limits = {f"{name}_lo": "lo", f"{name}_hi": "hi"}
    found = frames.over_seeds(means[[*KEYS, "seed", name, *limits, "reason"]].rename(columns=limits), KEYS, name)
    return found.rename(columns={short: long for long, short in limits.items()})


@figure("loss_against_isotropy")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """All checkpoints, then isotropy and loss of the last ones, a row a model; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    models = frames.in_order(drawn["model"])
    colours = style.ramp(len(models))
    looks = {model: {"color": colours[k], "marker": style.marker(k)} for k, model in enumerate(models)}
    wide = style.wide(options)
    with style.style(options):
        height = max(2.4, 0.6 + 0.17 * len(models))
        fig, axes = style.grid(*((1, 3) if wide else (3, 1)), inches=style.width(options), row_height=height)
        through, *ends = axes.flat
        for model, look in looks.items():
            _through(through, frames.pick(drawn, model=model), look)
        _say_what_is_missing(through, drawn)
        through.set_xlabel(LABELS[SCORE])
        through.set_ylabel(LABELS[LOSS])
        style.letter(through, 0, "over training")
        for k, (ax, name) in enumerate(zip(ends, (SCORE, LOSS), strict=True)):
            _end(ax, drawn[drawn["last"]], looks, name)
            style.letter(ax, k + 1, "last checkpoint")
        if wide:
            ends[1].tick_params(labelleft=False)
        _legend(fig, drawn, looks, options)
    return fig, drawn


def _through(ax: Axes, rows: pd.DataFrame, look: dict[str, Any]) -> None:
    """The path of a model; its untrained point hollow, its last one large. Untrained models have no path."""
    own = marks.own(rows)
    several = own["step"].nunique() > 1
    ax.plot(own[SCORE], own[LOSS], ls="-" if several else "none", lw=0.9, ms=2.6, alpha=0.85, **look)
    untrained = own[own["step"] == 0]
    ax.plot(untrained[SCORE], untrained[LOSS], ls="none", ms=3.6, mfc="white", mew=0.8, zorder=3, **look)
    last = own[own["last"]]
    _bars(ax, last, look["color"])
    ax.plot(last[SCORE], last[LOSS], ls="none", ms=6, mec=style.INK, mew=0.5, zorder=4, **look)
    copies = rows[(rows["status"] == "duplicate") & rows[SCORE].notna()]
    if len(copies):
        ax.plot(copies[SCORE], copies[LOSS], color=look["color"], zorder=3, **marks.COPY)


def _end(ax: Axes, last: pd.DataFrame, looks: dict[str, dict[str, Any]], name: str) -> None:
    """One value of the last checkpoints with its interval, models from top to bottom."""
    ax.set_xlabel(LABELS[name])
    if last.empty:
        style.absent(ax, "no checkpoint has both")
        return
    ax.set_yticks(range(len(looks)), list(looks))
    for text in ax.get_yticklabels():
        text.set_parse_math(False)
    ax.set_ylim(len(looks) - 0.5, -0.5)
    for k, (model, look) in enumerate(looks.items()):
        rows = frames.pick(last, model=model)
        ax.hlines(np.full(len(rows), k), rows[f"{name}_lo"], rows[f"{name}_hi"], color=look["color"], lw=0.9)
        ax.plot(rows[name], np.full(len(rows), k), ls="none", ms=4.5, mec=style.INK, mew=0.5, **look)


def _bars(ax: Axes, rows: pd.DataFrame, colour: str) -> None:
    ax.hlines(rows[LOSS], rows["isotropy_lo"], rows["isotropy_hi"], color=colour, lw=0.8)
    ax.vlines(rows[SCORE], rows["loss_lo"], rows["loss_hi"], color=colour, lw=0.8)


def _say_what_is_missing(ax: Axes, drawn: pd.DataFrame) -> None:
    if drawn.empty:
        style.absent(ax, "no rows")
    lost = [
        f"{model}: n/a, {'; '.join(sorted(set(rows['reason']) - {''}))}"
        for model, rows in drawn.groupby("model")
        if not rows["last"].any()
    ]
    said = ax.text(0.02, 0.02, "\n".join(lost), transform=ax.transAxes, color=style.MUTED, parse_math=False)
    said.set_in_layout(False)


def _legend(fig: Figure, drawn: pd.DataFrame, looks: dict[str, dict[str, Any]], options: Options) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], label=model, **look) for model, look in looks.items()]
    ink: dict[str, Any] = {"color": style.INK, "ls": "none", "marker": "o"}
    parts = [Line2D([], [], label="last checkpoint", ms=6, **ink)] if drawn["last"].any() else []
    if (drawn["step"] == 0).any():
        parts.append(Line2D([], [], label="untrained", ms=3.6, mfc="white", **ink))
    if np.isfinite(drawn[LIMITS].to_numpy(float)).any():
        label = f"{style.interval_name(drawn, options)}; mean over {style.bucket_kind(options)} buckets"
        parts.append(Line2D([], [], color=style.INK, lw=0.8, label=label))
    status = marks.handles(drawn[drawn["status"] != "broken"], SCORE)
    style.legend(fig, [lines, parts, status])
