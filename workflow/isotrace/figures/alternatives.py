"""Does another explanation account for the energy ratio: under each of five, over training, at the ends of the model.
Bernas et al. 2026 (ratio); variance, mean direction, outlier dimensions, loss and age as rivals are our choice."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures import frames, marks, panels, steps, style
from isotrace.figures.registry import Options, Tables, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = ["model", "site", "layer", "alternative", "checkpoint", "step", "status"]
RUN = ["model", "seed", "site", "layer", "checkpoint", "step", "status"]
NAMES = {
    "ratio": "plain, as in energy_over_training",
    "ratio_variance_weighted": "against subspaces drawn by activation variance",
    "ratio_mean_removed": "mean direction projected out",
    "ratio_outliers_dropped": "outlier dimensions dropped",
    "ratio_loss_balanced": "buckets weighted to one mean loss",
    "ratio_moving": "basis of the checkpoint's own age",
}


def data(tables: Tables, options: Options) -> pd.DataFrame:
    """The points drawn, from tables ``controls`` and ``energy``: one row per model, site, alternative and checkpoint.

    Options: ``rank`` (8), ``method`` ("pca"), ``quantity`` ("gradient"), ``sites`` (first and last block). ``value``
    is the geometric mean over buckets: of the plain ratio over all, times that of rival over plain where a bucket has
    both, so that one which lacks the rival moves nothing; ``buckets`` is how many have it. ``lo`` and ``hi``: of the
    plain ratio its interval in ``energy``; of a rival, whose rows are the same, the lowest and highest bucket's change.
    With several seeds the mean over them and their range. A ``reason`` where there is no value.
    """
    controls = frames.every_checkpoint(tables, "controls")
    quantity, method = options.get("quantity", "gradient"), options.get("method", "pca")
    rows = frames.pick(controls, quantity=quantity, method=method, basis="fixed")
    rows = frames.pick(rows, rank=frames.rank_of(rows, options))
    wanted = [frames.pick(m, site=frames.end_blocks(m, options)) for _, m in rows.groupby("model")]
    rows = pd.concat(wanted) if wanted else rows
    rows = frames.with_tombstones(rows, controls, line=["site", "layer", "bucket"])
    means = pd.concat([_over_buckets(rows, name) for name in NAMES], ignore_index=True)
    points = frames.over_seeds(_with_plain_interval(means, tables, options), KEYS, "value", log=True)
    rival = (points["alternative"] != "ratio") & (points["interval"] == "within the run")
    points.loc[rival, "interval"] = "range over buckets"
    counts = means.groupby(KEYS, as_index=False, dropna=False).agg(buckets=("buckets", "min"))
    return points.merge(counts, on=KEYS, validate="one_to_one")


def _over_buckets(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The geometric mean of one column over buckets, each checkpoint and seed by itself."""
    plain, rival = (np.log(rows[column].where(rows[column] > 0)) for column in ("ratio", name))
    means = (
        rows.assign(plain=plain, change=rival - plain)
        .groupby(RUN, as_index=False, dropna=False)
        .agg(
            plain=("plain", "mean"),
            change=("change", "mean"),
            least=("change", "min"),
            most=("change", "max"),
            buckets=("change", "count"),
            reason=("reason", "first"),
        )
    )
    value = (means["plain"] + means["change"]).map(np.exp)
    told = means["reason"].where(value.isna(), "").map(lambda text: _own_reason(str(text), name))
    lo, hi = (np.exp((means["plain"] + means[end]).where(means["buckets"] > 1)) for end in ("least", "most"))
    return means.assign(alternative=name, value=value, lo=lo, hi=hi, reason=told)


def _with_plain_interval(means: pd.DataFrame, tables: Tables, options: Options) -> pd.DataFrame:
    """``means`` whose plain ratios carry the interval over sequences that table ``energy`` has for them."""
    energy = frames.every_checkpoint(tables, "energy")
    chosen = {"quantity": options.get("quantity", "gradient"), "method": options.get("method", "pca")}
    rows = frames.pick(energy, basis="fixed", null_space="complement", **chosen)
    rows = frames.ratios(frames.pick(rows, rank=frames.rank_of(rows, options)))
    known = frames.geometric_mean(rows, RUN).assign(alternative="ratio")
    known = known[[*RUN, "alternative", "lo", "hi"]].rename(columns={"lo": "energy_lo", "hi": "energy_hi"})
    joined = means.merge(known, on=[*RUN, "alternative"], how="left")
    plain = joined["alternative"] == "ratio"
    ends = {end: joined[end].where(~plain, joined[f"energy_{end}"]) for end in ("lo", "hi")}
    return joined.assign(**ends).drop(columns=["energy_lo", "energy_hi"])


def _own_reason(text: str, name: str) -> str:
    """The part of a row's reasons that is about one column."""
    own = [part for part in text.split("; ") if part.startswith(f"{name}: ")]
    return "; ".join(own).removeprefix(f"{name}: ") if own else text


@figure("alternatives")
def draw(tables: Tables, options: Options) -> tuple[Figure, pd.DataFrame]:
    """A row of panels per model, a panel per site; the drawn table is that of ``data``."""
    drawn = data(tables, options)
    with style.style(options):
        axis = steps.StepAxis.of(drawn["step"])
        fig, axes = panels.by_site(drawn, options, partial(_panel, axis=axis))
        _scales(axes, drawn)
        for row in axes:
            row[0].set_ylabel("gradient energy\n(ratio to its null, log)")
        _legend(fig, drawn, options)
    return fig, drawn


def _looks() -> dict[str, dict[str, Any]]:
    rivals = [name for name in NAMES if name != "ratio"]
    colours = style.ramp(len(rivals))
    looks: dict[str, dict[str, Any]] = {"ratio": {"color": style.ACCENT, "marker": "o", "lw": 2.0, "zorder": 2}}
    for k, name in enumerate(rivals):
        looks[name] = {"color": colours[k], "marker": style.marker(k + 1), "ls": (0, (4, 1.2)), "lw": 1.0, "zorder": 3}
    return looks


def _panel(ax: Axes, rows: pd.DataFrame, last: bool, *, axis: steps.StepAxis) -> None:
    axis.apply(ax, label="training step" if last else None)
    ax.axhline(1, color=style.MUTED, lw=0.6, zorder=1)
    if rows["value"].isna().all():
        style.absent(ax, "; ".join(sorted(set(rows["reason"]))))
        return
    for name, look in _looks().items():
        line = rows[rows["alternative"] == name]
        if line["value"].notna().any():
            steps.line(ax, axis, line, shade=bool(line["lo"].notna().any()), **look)


def _scales(axes: Any, drawn: pd.DataFrame) -> None:
    """One logarithmic scale for all panels."""
    finite = drawn[["value", "lo", "hi"]].to_numpy(float)
    finite = finite[np.isfinite(finite) & (finite > 0)]
    for ax in axes.flat:
        ax.set_ylim(float(finite.min(initial=0.8)) / 1.2, float(finite.max(initial=2.0)) * 1.3)
        style.decades(ax)
        if ax not in axes[:, 0]:
            ax.tick_params(labelleft=False)


def _legend(fig: Figure, drawn: pd.DataFrame, options: Options) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    shown = set(drawn.loc[drawn["value"].notna(), "alternative"])
    lines = [Line2D([], [], label=NAMES[name], **look) for name, look in _looks().items() if name in shown]
    plain = drawn[drawn["alternative"] == "ratio"]
    names = {"within the run": f"plain: {style.interval_name(plain, options)}"}
    names |= {"range over buckets": "others: lowest to highest bucket", "range over seeds": "range over seeds"}
    told = [name for kind, name in names.items() if kind in set(drawn.loc[drawn["lo"].notna(), "interval"])]
    shades = [Patch(color=style.COOL, alpha=0.25, lw=0, label="; ".join(told))] if told else []
    gone = drawn[drawn["alternative"].isin(shown)]
    style.legend(fig, [lines, [*shades, *marks.handles(gone, "value")]])
