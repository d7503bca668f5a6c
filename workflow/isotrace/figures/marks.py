"""Marks of checkpoints that no line joins: a copy of another at its own value, a broken one at the panel's foot.
Our own choice: a copy is no measurement of its own, and a gap alone would read as a step that was never stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.figures.style import INK, gone_handles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COPY: dict[str, Any] = {"marker": "<", "ms": 4.5, "mfc": "white", "mew": 0.8, "ls": "none"}
BROKEN: dict[str, Any] = {"marker": "s", "ms": 4.5, "mfc": "white", "mew": 0.8, "ls": "none", "color": INK}
LABELS = {"duplicate": "copy of another checkpoint, in no line", "broken": "broken checkpoint"}


def with_status(frame: pd.DataFrame) -> pd.DataFrame:
    """``frame`` with a column ``status`` (ok, duplicate or broken); all are ok where nothing says otherwise."""
    return frame if "status" in frame else frame.assign(status="ok")


def own(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of checkpoints that are sound and no copy: those that lines join and means take."""
    return frame[frame["status"] == "ok"] if "status" in frame else frame


def draw(ax: Axes, x: Callable[[pd.Series], Any], rows: pd.DataFrame, colour: Any) -> None:
    """Hollow marks of the rows that ``own`` leaves out: ``value`` over ``x(step)``, or the foot of ``ax``."""
    if "status" not in rows:
        return
    copies = rows[(rows["status"] == "duplicate") & rows["value"].notna()]
    broken = rows[rows["status"] == "broken"]
    if len(copies):
        ax.plot(x(copies["step"]), copies["value"], color=colour, zorder=3, **COPY)
    if len(broken):
        foot = np.zeros(len(broken))
        ax.plot(x(broken["step"]), foot, transform=ax.get_xaxis_transform(), clip_on=False, zorder=11, **BROKEN)


def handles(drawn: pd.DataFrame, value: str) -> list[Any]:
    """Legend entries of what stands beside the lines, as far as ``drawn`` has it: gaps, copies, broken checkpoints."""
    from matplotlib.lines import Line2D

    found = with_status(drawn)
    marks = [
        Line2D([], [], label=LABELS[status], **{"color": INK, **look})
        for status, look in (("duplicate", COPY), ("broken", BROKEN))
        if (found["status"] == status).any()
    ]
    return [*gone_handles(found.loc[found["status"] != "broken", value]), *marks]
