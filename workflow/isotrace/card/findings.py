"""From a model's readings to findings: the number now, the verdict, where and when it went beyond its threshold.
Thresholds are the config's, with defaults that are our choice."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd

from isotrace.card.measures import MEASURES, Measure
from isotrace.card.readings import How, Read, Tables

Verdict = Literal["ok", "watch", "alarm", "unknown"]
SEVERITY: tuple[Verdict, ...] = ("unknown", "ok", "watch", "alarm")
NEWEST = "the newest checkpoint has no number"


@dataclass(frozen=True)
class Span:
    """Checkpoints in a row beyond `watch`: steps of the first and last, and the worst value among them, and where.

    ``from_site`` is the shallowest site beyond it at the first of them; ``to_end``: the newest checkpoint is one.
    """

    first: int
    last: int
    from_site: str
    worst: float
    worst_site: str
    worst_step: int
    to_end: bool


@dataclass(frozen=True)
class Finding:
    """One row of the card; ``value``, ``lo``, ``hi``, ``site`` are of the worst site at ``step``, the newest one.

    ``worst``: the worst site of every checkpoint that has a value, rising by step. ``spans``: see ``Span``.
    """

    measure: Measure
    read: Read
    watch: float
    alarm: float
    verdict: Verdict
    reason: str = ""
    value: float = np.nan
    lo: float = np.nan
    hi: float = np.nan
    site: str = ""
    step: int = -1
    worst: pd.DataFrame | None = None
    spans: tuple[Span, ...] = ()

    @property
    def onset(self) -> Span | None:
        """The span that reaches the newest checkpoint, if it is beyond `watch` there."""
        return next((s for s in self.spans if s.to_end), None)

    @property
    def borderline(self) -> bool:
        """Whether the interval holds a threshold, so that another text might give another verdict."""
        return any(self.lo < limit < self.hi for limit in (self.watch, self.alarm))


def findings(tables: Tables, model: str, how: How) -> list[Finding]:
    """A finding a measure, in the order of ``MEASURES``; ``how`` holds thresholds, rank, method, null_space."""
    thresholds: Mapping[str, Mapping[str, float]] = how["thresholds"]
    return [judged(m, m.read(tables, model, how), **thresholds[m.name]) for m in MEASURES]


def verdict_of(found: list[Finding]) -> Verdict:
    """The gravest of all; unknown only where all are."""
    return max((f.verdict for f in found), key=SEVERITY.index)


def judged(measure: Measure, read: Read, *, watch: float, alarm: float) -> Finding:
    """The finding of one reading. Without a number at the newest checkpoint the verdict is unknown."""
    sign = -1.0 if measure.falls else 1.0
    known: dict[str, Any] = {"measure": measure, "read": read, "watch": watch, "alarm": alarm}
    if read.frame.empty:
        return Finding(**known, verdict="unknown", reason=read.reason)
    worst = worst_sites(read, sign)
    newest = read.frame.sort_values("step", kind="stable").iloc[-1]
    last = worst.iloc[-1]
    values = {name: float(last[name]) for name in ("value", "lo", "hi")}
    known |= {"worst": worst, "spans": spans(read, worst, watch, sign), "step": int(last["step"])}
    known |= {"site": str(last["site"]), **values}
    if newest["step"] != last["step"]:
        reason = f"{NEWEST} ({newest['checkpoint']}: {newest['reason']})"
        return Finding(**known, verdict="unknown", reason=reason)
    return Finding(**known, verdict=_verdict(values["value"], watch, alarm, sign))


def _verdict(value: float, watch: float, alarm: float, sign: float) -> Verdict:
    if sign * (value - alarm) > 0:
        return "alarm"
    return "watch" if sign * (value - watch) > 0 else "ok"


def worst_sites(read: Read, sign: float) -> pd.DataFrame:
    """At each checkpoint with a value, the row of the judged site where it is worst."""
    rows = read.frame[read.frame["site"].isin(read.judged) & read.frame["value"].notna()]
    order = (-sign * rows["value"]).sort_values(kind="stable").index
    worst = rows.loc[order].drop_duplicates("checkpoint")
    return worst.sort_values(["step", "checkpoint"]).reset_index(drop=True)


def spans(read: Read, worst: pd.DataFrame, watch: float, sign: float) -> tuple[Span, ...]:
    """Every unbroken run of checkpoints whose worst site is beyond ``watch``, in order."""
    beyond = (sign * (worst["value"] - watch) > 0).to_numpy()
    begins = np.flatnonzero(beyond & ~np.concatenate([[False], beyond[:-1]]))
    ends = np.flatnonzero(beyond & ~np.concatenate([beyond[1:], [False]]))
    found = []
    for a, b in zip(begins, ends, strict=True):
        peak = worst.iloc[a + int(np.argmax(sign * worst["value"].to_numpy(float)[a : b + 1]))]
        here = read.frame[read.frame["checkpoint"] == worst["checkpoint"].iloc[a]]
        sites = here[sign * (here["value"] - watch) > 0].sort_values("layer")["site"]
        found.append(
            Span(
                first=int(worst["step"].iloc[a]), last=int(worst["step"].iloc[b]), from_site=str(sites.iloc[0]),
                worst=float(peak["value"]), worst_site=str(peak["site"]), worst_step=int(peak["step"]),
                to_end=bool(b == len(worst) - 1),
            )
        )  # fmt: skip
    return tuple(found)
