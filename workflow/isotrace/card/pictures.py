"""Small pictures of a measure over training, drawn as SVG text: no drawing library, no script, no font of their own.
Sites thin, the worst of each checkpoint thick with its interval, thresholds dashed; our choice."""

import html
from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from isotrace.card.findings import Finding

WIDTH, HEIGHT = 320, 132
LEFT, RIGHT, TOP, BOTTOM = 40, 8, 10, 20
WATCH, ALARM, INK, MUTED = "#a86400", "#a4262c", "#1a1a1a", "#9a9a9a"
Place = Callable[[float], float]


def short(value: float) -> str:
    """Three digits at most, thousands as k and millions as M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.2g}" if abs(value) < 1 else f"{value:.3g}"


def picture(finding: Finding) -> str:
    """One finding over training; empty where it has no number."""
    if finding.worst is None:
        return ""
    frame, worst = finding.read.frame, finding.worst
    x, y, (low, high) = _axes(finding)
    lines = []
    for site in finding.read.judged:
        lines.append(_line(frame[(frame["site"] == site) & frame["value"].notna()], x, y, f"stroke='{MUTED}'"))
    label = f"{finding.measure.title} over training steps {worst['step'].iloc[0]} to {worst['step'].iloc[-1]}"
    dots = (f"<circle cx='{x(s):.1f}' cy='{y(v):.1f}' r='2.2' fill='{INK}'/>" for s, v in _points(worst))
    parts = [
        f"<title>{html.escape(label)}</title>",
        f"<path d='M{LEFT},{TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}' fill='none' stroke='{MUTED}'/>",
        *(_limit(v, y, c) for v, c in ((finding.watch, WATCH), (finding.alarm, ALARM)) if low <= v <= high),
        *lines,
        _band(worst, x, y),
        _line(worst, x, y, f"stroke='{INK}' stroke-width='2'"),
        *dots,
        *_ticks(x, y, worst["step"], (low, high)),
    ]
    role = f"role='img' aria-label='{html.escape(label)}'"
    return f"<svg viewBox='0 0 {WIDTH} {HEIGHT}' {role}>{''.join(parts)}</svg>"


def _points(rows: pd.DataFrame) -> list[tuple[float, float]]:
    return list(zip(rows["step"].astype(float), rows["value"].astype(float), strict=True))


def _axes(finding: Finding) -> tuple[Place, Place, tuple[float, float]]:
    """Where steps (log10 of 1 + step) and values lie in the picture; the threshold next to the data is in view."""
    assert finding.worst is not None
    values = finding.read.frame["value"].to_numpy(float)
    held = [*values, *finding.worst["lo"], *finding.worst["hi"], finding.watch]
    low, high = float(np.nanmin(held)), float(np.nanmax(held))
    low = min(low, 0.0) if low < 0.5 * high else low
    pad = 0.06 * ((high - low) or 1.0)
    low, high = low - (pad if low else 0.0), high + pad
    steps = np.log10(1 + finding.worst["step"].to_numpy(float))
    first, span = steps.min(), (steps.max() - steps.min()) or 1.0

    def x(step: float) -> float:
        return float(LEFT + 6 + (np.log10(1 + step) - first) / span * (WIDTH - LEFT - RIGHT - 12))

    def y(value: float) -> float:
        return float(TOP + (high - value) / (high - low) * (HEIGHT - TOP - BOTTOM))

    return x, y, (low, high)


def _line(rows: pd.DataFrame, x: Place, y: Place, look: str) -> str:
    points = " ".join(f"{x(s):.1f},{y(v):.1f}" for s, v in _points(rows.sort_values("step", kind="stable")))
    return f"<polyline points='{points}' fill='none' {look}/>"


def _band(worst: pd.DataFrame, x: Place, y: Place) -> str:
    """The interval as a shade, where there is one."""
    known = worst.dropna(subset=["lo", "hi"])
    up = [f"{x(s):.1f},{y(v):.1f}" for s, v in zip(known["step"], known["hi"], strict=True)]
    down = [f"{x(s):.1f},{y(v):.1f}" for s, v in zip(known["step"], known["lo"], strict=True)]
    points = " ".join([*up, *reversed(down)])
    return f"<polygon points='{points}' fill='{INK}' opacity='.15'/>" if len(known) > 1 else ""


def _limit(value: float, y: Place, colour: str) -> str:
    at = f"{y(value):.1f}"
    return f"<path d='M{LEFT},{at}H{WIDTH - RIGHT}' stroke='{colour}' stroke-dasharray='4 3'/>"


def _ticks(x: Place, y: Place, steps: Sequence[int] | pd.Series, limits: tuple[float, float]) -> list[str]:
    """The first and last step, and the values at either end of the axis."""
    first, last = min(steps), max(steps)
    named = {first: "untrained" if first == 0 else f"step {short(first)}", last: f"step {short(last)}"}
    ends = dict(zip(named, ("start", "end") if len(named) > 1 else ("start",), strict=True))
    texts = [
        f"<text x='{x(step):.1f}' y='{HEIGHT - 6}' text-anchor='{ends[step]}'>{name}</text>"
        for step, name in named.items()
    ]
    low, high = limits
    for value, at in ((high, TOP + 8), (low, HEIGHT - BOTTOM)):
        texts.append(f"<text x='{LEFT - 4}' y='{at}' text-anchor='end'>{short(value)}</text>")
    return texts
