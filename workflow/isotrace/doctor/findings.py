"""Findings of the doctor: what was looked at, how it is, and what to do about it (our choice of words)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Finding:
    """One line. ``do`` says what to do, and is empty only where all is well."""

    status: Status
    what: str
    said: str
    do: str = ""


def ok(what: str, said: str) -> Finding:
    """All is well."""
    return Finding("ok", what, said)


def warn(what: str, said: str, do: str) -> Finding:
    """It may go wrong, or costs something."""
    return Finding("warn", what, said, do)


def fail(what: str, said: str, do: str) -> Finding:
    """It will go wrong."""
    return Finding("fail", what, said, do)


def lines(found: Iterable[Finding]) -> list[str]:
    """A line a finding, and below it what to do."""
    told = []
    for one in found:
        told.append(f"{one.status:<5} {one.what:<12} {one.said}")
        told += [f"      {'':<12} -> {one.do}"] if one.do else []
    return told
