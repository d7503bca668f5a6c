"""What a dry run would do, as one line a rule: how many jobs, and why they run.

Our own reading of what Snakemake 9 prints of each job; of params that differ it gives the old and the new ones.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrace.recapture import Rows, asked

_RULE = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):$")
_FIELD = re.compile(r"^    (\w+): ?(.*)$")
_FILES = {
    "missing": re.compile(r"Missing output files: (.*?)(?=; [A-Z]|$)"),
    "newer": re.compile(r"Updated input files: (.*?)(?=; [A-Z]|$)"),
    "half": re.compile(r"Incomplete output files: (.*?)(?=; [A-Z]|$)"),
}
_SAID = {
    "Set of input files has changed": "other input files",
    "Code has changed": "code",
    "Forced execution": "forced",
    "Software environment definition has changed": "software environment",
    "are always executed": "always",
}
_PARAMS = "Params have changed since last execution: "
_SHOWN, _WIDTH = 3, 60
"""Causes of a kind that a line names, and characters of a value."""


@dataclass
class Planned:
    """One job as the dry run prints it."""

    rule: str
    fields: dict[str, str] = field(default_factory=dict)

    def files(self, kind: str) -> list[str]:
        """What it reads (``input``) or writes (``output``)."""
        return [file.split(" (")[0] for file in self.fields.get(kind, "").split(", ") if file]

    @property
    def rows(self) -> list[Rows]:
        """The rows it would write; none of most rules."""
        cache = next((file for file in self.files("output") if "/cache/" in file and file.endswith(".json")), None)
        moments = next((file for file in self.files("output") if "/moments/" in file and file.endswith(".json")), None)
        if cache is None or moments is None:
            return []
        return [Rows(Path(cache), Path(moments), Path(self.fields.get("benchmark", "")))]


def read(lines: Iterable[str]) -> list[Planned]:
    """The jobs of a dry run that write something, from the lines of its output."""
    jobs: list[Planned] = []
    inside = False
    for line in lines:
        if rule := _RULE.match(line):
            jobs.append(Planned(rule[1]))
            inside = True
        elif (part := _FIELD.match(line)) and inside:
            jobs[-1].fields[part[1]] = part[2]
        elif not line.strip():
            inside = False
    return [job for job in jobs if job.files("output")]


def table(jobs: Sequence[Planned], *, folder: Path, allowed: bool = False) -> list[str]:
    """A line a rule on the way of the data, the total, and what was cleaned and would be captured again.

    ``folder`` is the working folder that the files are named from; ``allowed``: whether such rows may be captured.
    """
    if not jobs:
        return ["nothing to do"]
    by_rule = _in_order(jobs)
    wide = max(map(len, [*by_rule, "total"]))
    lines = [f"{'rule':<{wide}}  jobs  why"]
    lines += [f"{rule:<{wide}}  {len(some):>4}  {why(some, by_rule)}" for rule, some in by_rule.items()]
    lines.append(f"{'total':<{wide}}  {len(jobs):>4}")
    rows = [Rows(folder / r.cache, folder / r.moments, folder / r.benchmark) for job in jobs for r in job.rows]
    again = [one for one in rows if one.cleaned]
    return [*lines, f"note: {asked(again)}"] if again and not allowed else lines


def _in_order(jobs: Sequence[Planned]) -> dict[str, list[Planned]]:
    """Jobs by rule, a rule after all those that it waits for, by name where that says nothing."""
    by_rule: dict[str, list[Planned]] = {}
    for job in jobs:
        by_rule.setdefault(job.rule, []).append(job)
    waits = {rule: _after(some, by_rule) - {rule} for rule, some in by_rule.items()}
    order: list[str] = []
    while len(order) < len(waits):
        order.append(min(rule for rule in waits if rule not in order and waits[rule] <= set(order)))
    return {rule: by_rule[rule] for rule in order}


def _after(jobs: Sequence[Planned], planned: Mapping[str, Sequence[Planned]]) -> set[str]:
    """The planned rules whose files these jobs read."""
    read = {file for job in jobs for file in job.files("input")}
    return {rule for rule, some in planned.items() if any(file in read for job in some for file in job.files("output"))}


def why(jobs: Sequence[Planned], planned: Mapping[str, Sequence[Planned]]) -> str:
    """Why the jobs of one rule run, the commonest reason first; a reason of some of them has their number.

    Jobs with no reason of their own run after others; ``planned`` are all, rule by rule.
    """
    causes = {id(job): set(_own(job.fields.get("reason", ""))) for job in jobs}
    below = [job for job in jobs if not causes[id(job)]]
    counted = Counter(cause for some in causes.values() for cause in some)
    rules = [rule for rule in planned if rule in _after(below, planned)]
    if rules:
        counted[f"after {', '.join(rules)}"] = len(below)
    shown = [cause if n == len(jobs) else f"{cause} ({n})" for cause, n in counted.most_common(_SHOWN)]
    return "; ".join(shown) + (f"; {len(counted) - _SHOWN} more reasons" if len(counted) > _SHOWN else "")


def _own(reason: str) -> Iterator[str]:
    before, _, params = reason.partition(_PARAMS)
    if _FILES["missing"].search(before):
        yield "output missing"
    if _FILES["half"].search(before):
        yield "half-written output"
    if newer := _FILES["newer"].search(before):
        files = newer[1].split(", ")
        yield f"newer input {', '.join(files[:_SHOWN])}" + (" ..." if len(files) > _SHOWN else "")
    yield from (said for words, said in _SAID.items() if words in reason)
    if params:
        yield differing(params)


def differing(said: str) -> str:
    """The params that differ, with the old and the new value, from Snakemake's sentence on them."""
    parts = said.partition("before: ")[2].split(" now: ")
    splits = [(" now: ".join(parts[:i]), " now: ".join(parts[i:])) for i in range(1, len(parts))]
    read = [(_values(old), _values(new)) for old, new in splits]
    before, now = next(((b, n) for b, n in read if b is not None and n is not None), ({}, {}))
    if before == now:
        return "other params"
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    changed = [f"{name} {_brief(before, name)} -> {_brief(now, name)}" for name in names if name != "code"]
    code = ["code"] if "code" in names else []
    return ", ".join([*code, *changed])


def _values(text: str) -> dict[str, Any] | None:
    """The first dict of params in a list of their reprs, None for what is none."""
    if text.strip() == "<nothing exclusive>":
        return {}
    try:
        found = ast.literal_eval(f"[{text.strip()}]")
    except (SyntaxError, ValueError):
        return None
    return found[0] if found and isinstance(found[0], dict) else None


def _brief(values: Mapping[str, Any], name: str) -> str:
    if name not in values:
        return "nothing"
    text = str(values[name])
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 3]}..."
