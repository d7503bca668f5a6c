"""What the card and `isotrace check` say of a finding in words, the same in both."""

import numpy as np

from isotrace.card.findings import Finding, Span, Verdict

SAID: dict[Verdict, str] = {
    "ok": "No sign of it",
    "watch": "Not yet, but look closer",
    "alarm": "By these thresholds, yes",
    "unknown": "Nothing here can tell",
}


def number(value: float) -> str:
    """Three significant digits without an exponent where a person would write none; n/a for what is missing."""
    if not np.isfinite(value):
        return "n/a"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def with_interval(value: float, lo: float, hi: float) -> str:
    """A number with its interval, if it has one."""
    return f"{number(value)} [{number(lo)}, {number(hi)}]" if np.isfinite([lo, hi]).all() else number(value)


def limits(finding: Finding) -> str:
    """Both thresholds and on which side of them lies what is bad."""
    side = "below" if finding.measure.falls else "above"
    return f"watch {side} {finding.watch:g}, alarm {side} {finding.alarm:g}"


def where(finding: Finding) -> str:
    """The site and step of the number; empty without one."""
    if finding.worst is None:
        return ""
    what = f" ({finding.read.of})" if finding.read.of else ""
    worst = ", the worst of its sites" if len(finding.read.judged) > 1 else ""
    return f"at {finding.site}{worst}, step {finding.step:,}{what}"


def when(finding: Finding) -> list[str]:
    """Since when and where it is beyond its threshold, and every earlier passage; sentences."""
    said = []
    if finding.reason:
        said.append(f"Unknown: {finding.reason}.")
    for span in finding.spans:
        said.append(_begun(span) if span.to_end else _passed(span))
    if finding.borderline:
        said.append("The interval reaches across a threshold.")
    return said


def _worst(span: Span) -> str:
    return f"worst {number(span.worst)} at {span.worst_site}, step {span.worst_step:,}"


def _begun(span: Span) -> str:
    return f"Beyond it since step {span.first:,}, from {span.from_site} on; {_worst(span)}."


def _passed(span: Span) -> str:
    steps = f"at step {span.first:,}" if span.first == span.last else f"from step {span.first:,} to {span.last:,}"
    return f"Beyond it {steps}, from {span.from_site} on, and back since; {_worst(span)}."
