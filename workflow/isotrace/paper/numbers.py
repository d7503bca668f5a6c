"""Numbers as LaTeX: three significant digits, intervals, stars by adjusted p-value.
Our own choice; a number reads the same in a table, in a macro and in `isotrace headline`."""

from __future__ import annotations

import math

from isotrace.paper.tex import Tex, escape

LEVELS = ((0.001, "***"), (0.01, "**"), (0.05, "*"))
"""Adjusted p-values up to these carry these stars."""
STARS = "* p ≤ 0.05, ** p ≤ 0.01, *** p ≤ 0.001, adjusted."


def digits(value: float) -> str:
    """Three significant digits, without an exponent where a person would write none; n/a for what is missing."""
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return text.replace("-", "−") if "e" not in text else text


def number(value: float) -> Tex:
    """A number as LaTeX, in text and in formulas."""
    text = digits(value)
    mantissa, exponent, power = text.partition("e")
    if exponent:
        return Tex(rf"\ensuremath{{{mantissa}\times10^{{{int(power)}}}}}")
    return Tex(escape(text))


def interval(lo: float, hi: float) -> Tex:
    """An interval as LaTeX; empty where there is none."""
    if math.isnan(lo) or math.isnan(hi):
        return Tex("")
    return Tex(f"[{number(lo).text}, {number(hi).text}]")


def span(value: float, lo: float, hi: float, *, marks: str = "") -> Tex:
    """A value, stars behind it, and its interval."""
    starred = number(value).text + (rf"\ensuremath{{^{{{marks}}}}}" if marks else "")
    return Tex(f"{starred} {interval(lo, hi).text}".strip())


def stars(p: float) -> str:
    """The stars of an adjusted p-value; none where there is no p-value."""
    return next((mark for level, mark in LEVELS if p <= level), "")
