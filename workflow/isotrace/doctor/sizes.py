"""Does the study fit on this machine: disk, files, memory, threads, by the plan's own numbers.

Sizes of a plan do not depend on the machine's speed, so nothing is measured here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from isotrace.doctor.findings import Finding, fail, ok, warn
from isotrace.doctor.machine import Machine
from isotrace.planning.lines import size
from isotrace.study import Study

_GB = 1e9
_SPARE = 1.1
"""Disk left beside the plan, which counts no tables and figures."""


def disk(machine: Machine, totals: Mapping[str, Any], elsewhere: float = 0.0) -> Iterator[Finding]:
    """Bytes and files, against what may still be written at the results folder; ``elsewhere``: GB on another disk."""
    planned, held, free = totals["disk_gb"] - elsewhere, machine.held / _GB, machine.disk / _GB
    there = f", {size(held)} of it there" if held else ""
    said = f"{size(planned)} planned{there}, {size(free)} free at {machine.folder}"
    do = "free space, choose another folder with pathvars.results, or lower sample.rows_per_bucket (isotrace plan)"
    if planned > free + held:
        yield fail("disk", said, do)
    elif _SPARE * planned > free + held:
        yield warn("disk", said, do)
    else:
        yield ok("disk", said)
    if machine.files is not None and totals["files"] > machine.files:
        said = f"{totals['files']:,} planned, {machine.files:,} may be made at {machine.folder}"
        yield fail("files", said, "choose another folder with pathvars.results, or ask for a larger quota")


def memory(machine: Machine, totals: Mapping[str, Any], cores: int) -> Finding:
    """Peak of the largest job, alone and on every core at once."""
    if machine.memory is None or machine.available is None:
        return warn("memory", "this system does not say how much there is", "compare with isotrace plan yourself")
    one, all_, free = totals["memory_gb"], machine.memory / _GB, machine.available / _GB
    said = f"up to {size(one)} a job, {size(free)} free of {size(all_)}"
    if one > all_:
        return fail("memory", said, "lower capture.batch_size or sample.sequences, or run on a larger machine")
    if one * cores > free:
        few = max(int(free / one), 1)
        return warn("memory", f"{said}, {cores} jobs at a time", f"run fewer at a time: isotrace run --cores {few}")
    return ok("memory", said)


def threads(machine: Machine, study: Study, cores: int) -> Finding:
    """Threads of a job against the cores that there are."""
    most = max(study.execution.numeric_threads, study.execution.train_threads)
    said = f"{most} a job at most, {cores} of {machine.cores} cores used"
    if most > machine.cores:
        return warn(
            "threads", said, "lower execution.numeric_threads and execution.train_threads to the cores there are"
        )
    if cores > machine.cores:
        return warn("threads", said, f"isotrace run --cores {machine.cores}; more only wait for each other")
    return ok("threads", said)


def unknown(models: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """Models whose size no file says yet, so that the plan counts nothing of theirs."""
    names = [name for name, model in models.items() if model["parameters"] is None and model["kind"] == "hub"]
    if names:
        do = "isotrace resolve MODEL, then look again"
        yield warn("sizes", f"not known yet, and not counted here: {', '.join(names)}", do)


def limits(lines: list[str]) -> Iterator[Finding]:
    """Bounds of the config that the plan passes."""
    for line in lines:
        yield warn("limits", line.removeprefix("limits."), "raise the bound in the config, or make the study smaller")
