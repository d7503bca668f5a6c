"""The main figure to explore: gradient energy over training by model, site, bucket and rank, drawn by Vega-Lite.
Ratio and intervals as in the figure (Bernas et al. 2026); what can be picked, and the layout, are our choice."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert

from isotrace.figures import frames, style
from isotrace.figures.steps import StepAxis

LINE = ("model", "seed", "site", "bucket", "rank", "basis")
POINT = ("step", "x", "ratio", "lo", "hi", "null_lo", "null_hi")
ALL = "all buckets"
MOST = 20_000
"""Points held in the page; beyond them ranks, then checkpoints are left out, so that it stays below a few MB."""
CHOSEN = (
    f"datum.model == model && datum.site == site && datum.rank == rank && (bucket == '{ALL}' || datum.bucket == bucket)"
)


def points(energy: pd.DataFrame, *, rank: int, method: str, null_space: str, most: int = MOST) -> pd.DataFrame:
    """What can be picked: a row a point, columns ``LINE`` and ``POINT``, from table ``energy`` without copies.

    Rows without a ratio stay as gaps; with more than ``most`` only ``rank`` is kept, then evenly spread steps.
    """
    rows = frames.pick(energy, quantity="gradient", method=method, null_space=null_space, basis=frames.BASES)
    rows = rows[rows["site"] != ""]
    if len(rows) > most:
        rows = frames.pick(rows, rank=rank)
    if len(rows) > most:
        steps = sorted(set(rows["step"]))
        kept = frames.spread(list(map(str, steps)), max(most * len(steps) // len(rows), 2))
        rows = frames.pick(rows, step=[int(s) for s in kept])
    rows = frames.ratios(rows).rename(columns={"ratio_lo": "lo", "ratio_hi": "hi"})
    rows = rows.assign(x=StepAxis.of(rows["step"]).x(rows["step"]), seed=rows["seed"].astype("string").fillna(""))
    return rows.sort_values([*LINE, "step"], kind="stable")[[*LINE, *POINT, "layer"]].reset_index(drop=True)


def chart(found: pd.DataFrame, *, rank: int) -> dict[str, Any]:
    """The Vega-Lite specification, with its data: one record a line, which is unfolded once it is picked."""
    sites, models = frames.sites_in_order(found), frames.in_order(found["model"])
    buckets = frames.in_order(found["bucket"])
    last = (frames.blocks(found[found["model"] == models[0]]) or sites)[-1]
    picks = [
        _menu("model", models, models[0]),
        _menu("site", sites, last),
        _menu("bucket", [ALL, *buckets] if len(buckets) > 1 else buckets, ALL if len(buckets) > 1 else buckets[0]),
        _menu("rank", sorted({int(r) for r in found["rank"]}), rank),
    ]
    base = alt.Chart(alt.InlineData(values=_lines(found)))
    base = base.transform_filter(CHOSEN).transform_flatten(list(POINT))
    layers = alt.layer(*_layers(base, found, buckets)).add_params(*picks)
    shown = layers.properties(
        width="container",
        height=340,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        description="Gradient energy in the tangent subspace over that in a matched normal subspace, over training.",
    )
    spec: dict[str, Any] = shown.configure_view(stroke=None).configure(font="system-ui, sans-serif").to_dict()
    return spec


def _menu(name: str, options: Sequence[str | int], value: str | int) -> alt.Parameter:
    bound = alt.binding_select(options=list(options), name=f"{name} ", element="#choose")
    return alt.param(name=name, value=value, bind=bound)


def _lines(found: pd.DataFrame) -> list[dict[str, Any]]:
    """A record a line, whose points are lists; four digits are more than a screen shows."""
    records = []
    for key, rows in found.groupby(list(LINE), sort=True):
        record: dict[str, Any] = dict(zip(LINE, key, strict=True)) | {"rank": int(rows["rank"].iloc[0])}
        record["step"] = [int(s) for s in rows["step"]]
        record["x"] = [round(float(v), 4) for v in rows["x"]]
        record |= {name: [_digits(v) for v in rows[name]] for name in POINT[2:]}
        records.append(record)
    return records


def _digits(value: float) -> float | None:
    """None where a logarithmic axis has no place."""
    return float(f"{value:.4g}") if np.isfinite(value) and value > 0 else None


def _layers(base: alt.Chart, found: pd.DataFrame, buckets: Sequence[str]) -> list[alt.Chart]:
    """Null band, 1, intervals, lines, points; the untrained model stands apart and no line leads to it."""
    x = alt.X("x:Q", axis=_axis(StepAxis.of(found["step"])), scale=alt.Scale(zero=False, nice=False, padding=12))
    titled = alt.Axis(title="gradient energy, tangent / normal (log)", grid=False, tickCount=6)
    y = alt.Y("ratio:Q", scale=alt.Scale(type="log", nice=False, padding=8), axis=titled)
    low, one = alt.Y("lo:Q"), alt.Chart(alt.InlineData(values=[{}])).mark_rule(color=style.MUTED)
    below = alt.Legend(orient="bottom", symbolOpacity=1, symbolStrokeWidth=2, symbolSize=200)
    colour = alt.Color("bucket:N", scale=_scale(buckets, style.ramp(len(buckets))), legend=below)
    dash = alt.StrokeDash("basis:N", scale=_scale(frames.BASES, [[1, 0], [6, 4]]), legend=below)
    fill = alt.condition("datum.basis == 'moving'", alt.value("white"), colour)
    detail = [alt.Detail(f"{name}:N") for name in ("seed", "bucket", "basis")]
    trained, untrained = "datum.step > 0", "datum.step == 0"
    band = base.transform_aggregate(null_lo="min(null_lo)", null_hi="max(null_hi)", groupby=["x", "step"])
    band = band.encode(x=x, y=alt.Y("null_lo:Q"), y2="null_hi:Q")
    lines = base.encode(x=x, color=colour, detail=detail)
    told = [alt.Tooltip(f"{n}:N") for n in ("bucket", "basis", "step")]
    told += [alt.Tooltip(f"{n}:Q", format=".3~g") for n in ("ratio", "lo", "hi")]
    return [
        band.transform_filter(trained).mark_area(color=style.BAND),
        band.transform_filter(untrained).mark_rule(color=style.BAND, strokeWidth=14),
        one.encode(y=alt.datum(1)),
        lines.transform_filter(trained).mark_area(opacity=0.16).encode(y=low, y2="hi:Q"),
        lines.transform_filter(untrained).mark_rule(opacity=0.6).encode(y=low, y2="hi:Q"),
        lines.transform_filter(trained).mark_line().encode(y=y, strokeDash=dash),
        lines.mark_point(size=36, opacity=1).encode(y=y, fill=fill, tooltip=told),
    ]


def _scale(domain: Sequence[str], marks: Sequence[Any]) -> alt.Scale:
    return alt.Scale(domain=list(domain), range=list(marks))


def _axis(axis: StepAxis) -> alt.Axis:
    """Decades of steps with either end, and ``init`` where the untrained model stands."""
    low, high = np.log10(axis.first), np.log10(axis.last)
    inner = [d for d in range(int(np.ceil(low)), int(high) + 1) if min(d - low, high - d) > 0.15]
    values = [low - axis.gap] * axis.untrained + sorted({*map(float, inner), float(low), float(high)})
    label = f"datum.value < {low - axis.gap / 2} ? 'init' : format(pow(10, datum.value), '~s')"
    return alt.Axis(values=values, labelExpr=label, title="training step (log)", grid=False)


def interactive(spec: dict[str, Any], caption: str) -> str:
    """The chart as HTML: hidden until its script runs, with Vega's JavaScript in the page; nothing is fetched."""
    data = json.dumps(spec, sort_keys=True, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return (
        f"<div id=explore hidden><h3>Pick a model, a site, a bucket, a rank</h3><div id=choose></div>"
        f"<div id=chart></div><p class=muted>{caption}</p></div><script>{_vega()}</script>"
        f"<script type='application/json' id=spec>{data}</script><script>"
        "document.getElementById('explore').hidden=false;"
        "vegaEmbed('#chart',JSON.parse(document.getElementById('spec').textContent),{actions:false,renderer:'svg'});"
        "</script>"
    )


@cache
def _vega() -> str:
    """Vega, Vega-Lite and Vega-Embed as one script that sets ``vegaEmbed``, from the installed package."""
    return vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;").replace("</script", "<\\/script")
