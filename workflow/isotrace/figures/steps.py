"""The step axis and what is drawn over it: log steps, step 0 at a broken position, lines with their intervals.
Our own choice: a plain log axis drops step 0, and a line through it would claim what was not measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from isotrace.figures import marks
from isotrace.figures.style import INK, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Steps = Sequence[int] | pd.Series
Positions = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StepAxis:
    """Where a training step sits on a logarithmic axis with step 0 at a broken position named ``init``.

    ``first`` and ``last`` are the smallest and largest positive step; ``untrained`` says whether step 0 is drawn.
    """

    first: int
    last: int
    untrained: bool

    @classmethod
    def of(cls, steps: Steps) -> StepAxis:
        """The axis that holds all ``steps``."""
        values = sorted({int(s) for s in steps})
        positive = [s for s in values if s > 0] or [1]
        return cls(positive[0], positive[-1], bool(values) and values[0] == 0)

    @property
    def gap(self) -> float:
        """Distance of ``init`` from the first positive step, in decades."""
        return max(0.12 * float(np.log10(self.last) - np.log10(self.first)), 0.12)

    def x(self, steps: Steps) -> Positions:
        """Positions of ``steps`` (any number of them), in decades."""
        values = np.asarray(steps, dtype=float)
        trained = np.log10(np.maximum(values, 1))
        at: Positions = np.where(values > 0, trained, np.log10(self.first) - self.gap)
        return at

    def apply(self, ax: Axes, *, label: str | None = "training step") -> None:
        """Ticks, limits, the break and the label on ``ax``."""
        low, high = np.log10(self.first), np.log10(self.last)
        majors = [d for d in range(int(np.floor(low)), int(np.ceil(high)) + 1) if low - 1e-9 <= d <= high + 1e-9]
        labelled = {float(d): short(10**d) for d in majors}
        if len(majors) < 2:
            labelled |= {float(np.log10(s)): short(s) for s in (self.first, self.last)}
        elif high - majors[-1] > 0.12 * (high - low) + 0.15:
            labelled[float(high)] = short(self.last)
        if self.untrained:
            labelled[low - self.gap] = "init"
        ax.set_xticks(list(labelled), list(labelled.values()))
        minors = [np.log10(m * 10.0**d) for d in range(int(low) - 1, int(high) + 1) for m in range(2, 10)]
        ax.set_xticks([m for m in minors if low <= m <= high], minor=True)
        left = low - self.gap if self.untrained else low
        pad = 0.04 * max(high - left, 0.25)
        ax.set_xlim(left - pad, high + pad)
        if self.untrained:
            self._break(ax, low - self.gap / 2)
        if label:
            ax.set_xlabel(f"{label} (log)")

    def _break(self, ax: Axes, at: float) -> None:
        """Two short slashes through the axis line: what lies left of them is not on the logarithmic scale."""
        transform = ax.get_xaxis_transform()
        ax.plot([at], [0.0], marker="s", ms=3.2, color="white", transform=transform, clip_on=False, zorder=9)
        for shift in (-0.02, 0.02):
            centre = at + shift * 4 * self.gap
            ax.plot(
                [centre], [0.0], marker=(2, 0, -25), ms=5, mew=0.6, color=INK, ls="none",
                transform=transform, clip_on=False, zorder=10,
            )  # fmt: skip


@dataclass(frozen=True)
class Part:
    """A stretch of a series that may be joined by a line: ``x`` (m,) positions and the m ``rows``."""

    x: Positions
    rows: pd.DataFrame


def parts(axis: StepAxis, rows: pd.DataFrame) -> list[Part]:
    """``rows`` by step, cut at the break: step 0 alone (widened to be visible), then everything trained."""
    rows = rows.sort_values("step", kind="stable")
    untrained, trained = rows[rows["step"] == 0], rows[rows["step"] > 0]
    out = []
    if len(untrained):
        x = axis.x(untrained["step"][:1])
        half = 0.3 * axis.gap
        out.append(Part(np.array([x[0] - half, x[0] + half]), pd.concat([untrained[:1]] * 2)))
    if len(trained):
        out.append(Part(axis.x(trained["step"]), trained))
    return out


def line(
    ax: Axes, axis: StepAxis, rows: pd.DataFrame, *, hollow: bool = False, shade: bool = True, **look: Any
) -> None:
    """Draw ``value`` over ``step`` with the interval ``lo``..``hi``; step 0 stands apart, gaps stay gaps.

    A row without a value leaves a small cross at the panel's foot instead of vanishing; copies of another checkpoint
    and broken ones (column ``status``) are hollow marks that no line joins.
    """
    look = {"mfc": "white" if hollow else look.get("color"), "mew": 0.7, **look}
    for part in parts(axis, marks.own(rows)):
        point = bool((part.rows["step"] == 0).all())
        x, y = (part.x.mean(keepdims=True), part.rows[:1]) if point else (part.x, part.rows)
        ax.plot(x, y["value"], **(look | {"ls": "none"} if point else look))
        if not shade:
            continue
        if point:
            ax.vlines(x, y["lo"], y["hi"], color=look.get("color"), lw=0.8)
        else:
            ax.fill_between(x, y["lo"], y["hi"], color=look.get("color"), alpha=0.16, lw=0)
    marks.draw(ax, axis.x, rows, look.get("color"))
    gone = rows[rows["value"].isna()]
    gone = gone[gone["status"] != "broken"] if "status" in gone else gone
    if gone.empty:  # an empty unclipped line has an endless extent and collapses the layout
        return
    ax.plot(
        axis.x(gone["step"]), np.full(len(gone), 0.02), ls="none", marker="x", ms=3, mew=0.7, color=look.get("color"),
        transform=ax.get_xaxis_transform(), clip_on=False,
    )  # fmt: skip
