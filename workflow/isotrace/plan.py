"""What a study will take before anything runs: sizes, jobs, time here, memory, disk, files; no torch, no network.

Pure functions from the validated study and the speed of this machine; formulas are in ``planning``.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotrace.planning.calibration import Calibration
from isotrace.planning.costs import Cost, cost
from isotrace.planning.jobs import Jobs, jobs
from isotrace.planning.lines import size
from isotrace.planning.work import Work, work_of
from isotrace.study import Study

_GB = 1e9
_HOUR = 3600
_ONE_AFTER_ANOTHER = ("tokenizer", "train", "initialise", "dequantise", "tokens", "sample", "lock", "bases")
"""Rules whose jobs a model's later ones wait for; of the others one job each lies on the longest way."""
_OUTPUTS = {
    "controls": 2,
    "frequency": 2,
    "subspaces": 2,
    "table": 2,
    "dynamics": 2,
    "claims": 2,
    "figure": 3,
    "corpus": 2,
    "sample": 18,
    "tokens": 9,
}
"""Files that a job writes, 1 unless named, those of a checkpoint's stores aside."""
_WEIGHT_FILES = 4
"""Files of a checkpoint folder that a rule writes."""
_METADATA = 1100
"""Bytes of metadata, shard index and manifest a file of a store, on average."""


def plan(study: Study, speed: Calibration, *, cores: int, results: Path) -> dict[str, Any]:
    """The plan as plain values: ``models`` by name, ``jobs`` by rule, ``totals``, ``warnings``, ``notes``.

    Sizes are of bytes before compression and of as many rows as there may be, in 1e9 bytes (gb); tables and figures
    are counted among the files but not among the bytes. Times are of ``cores`` cores of the machine that ``speed``
    was measured on, with nothing done yet. ``results`` is the study's folder, where fetched configs may lie.
    """
    works = {name: work_of(study, name, results) for name in study.models}
    costs = [(one, cost(study, one, works.get(one.model), speed)) for one in jobs(study)]
    models = {name: _model(study, works[name], [c for c in costs if c[0].model == name]) for name in works}
    totals = _totals(models, costs, works, cores)
    return {
        "calibration": speed.as_dict(),
        "cores": cores,
        "jobs": _by_rule(costs),
        "models": models,
        "notes": _notes(study, works),
        "study": study.study,
        "totals": totals,
        "warnings": warnings(study, totals),
    }


def _model(study: Study, work: Work, costs: list[tuple[Jobs, Cost]]) -> dict[str, Any]:
    shape = work.shape
    objects, away = _in_bucket(work) if study.storage.cache else (0, 0)
    return {
        "bucket_files": objects,
        "bucket_gb": away / _GB,
        "cache_gb": work.cache_bytes / _GB,
        "checkpoints": work.checkpoints,
        "core_hours": sum(one.n * c.seconds for one, c in costs) / _HOUR,
        "disk_gb": (_disk(work) - away) / _GB,
        "files": _files(work) - objects + sum(_outputs(one) for one, _ in costs),
        "jobs": sum(one.n for one, _ in costs),
        "kind": study.models[work.model].source.kind,
        "layers": shape.layers if shape else None,
        "memory_gb": max(c.memory for _, c in costs),
        "moments_gb": work.moments_bytes / _GB,
        "parameters": shape.parameters if shape else None,
        "tokens": work.tokens,
        "weights_gb": work.weights / _GB,
        "width": shape.width if shape else None,
    }


def _in_bucket(work: Work) -> tuple[int, int]:
    """Objects of the rows, and their bytes."""
    return work.row_files, work.cache_bytes + _METADATA * work.row_files


def _disk(work: Work) -> int:
    described = _METADATA * work.store_files
    return work.cache_bytes + work.moments_bytes + work.heads_bytes + work.weights + described


def _files(work: Work) -> int:
    made = work.checkpoints if work.weights else 0
    return work.store_files + _WEIGHT_FILES * made


def _outputs(one: Jobs) -> int:
    """Files beside the stores: an analysis writes one a bucket, an audit one a checkpoint."""
    if one.rule in ("capture", "prefetch"):
        return 0
    return one.n * one.parts * _OUTPUTS.get(one.rule, 1)


def _by_rule(costs: list[tuple[Jobs, Cost]]) -> dict[str, dict[str, Any]]:
    """Jobs, core-hours and peak memory by rule, in the order of the data."""
    found: dict[str, dict[str, Any]] = {}
    for one, c in costs:
        rule = found.setdefault(one.rule, {"core_hours": 0.0, "memory_gb": 0.0, "n": 0})
        rule["n"] += one.n
        rule["core_hours"] += one.n * c.seconds / _HOUR
        rule["memory_gb"] = max(rule["memory_gb"], c.memory)
    return found


def _totals(
    models: Mapping[str, Mapping[str, Any]], costs: list[tuple[Jobs, Cost]], works: Mapping[str, Work], cores: int
) -> dict[str, Any]:
    summed = ("bucket_files", "bucket_gb", "cache_gb", "checkpoints", "disk_gb", "moments_gb", "tokens", "weights_gb")
    core_hours = sum(one.n * c.seconds for one, c in costs) / _HOUR
    shared = sum(_outputs(one) for one, _ in costs if not one.model)
    return {
        **{name: sum(model[name] for model in models.values()) for name in summed},
        "core_hours": core_hours,
        "files": shared + sum(model["files"] for model in models.values()),
        "hours": max(core_hours / cores, _longest(costs, list(works)) / _HOUR),
        "jobs": 1 + sum(one.n for one, _ in costs),  # with the target that asks for all of them
        "memory_gb": max(c.memory for _, c in costs),
    }


def _longest(costs: list[tuple[Jobs, Cost]], models: list[str]) -> float:
    """Seconds of the longest way through the jobs, which no number of cores shortens."""

    def way(model: str) -> float:
        mine = [(one, c.seconds) for one, c in costs if one.model == model]
        return sum(one.n * s if one.rule in _ONE_AFTER_ANOTHER[:2] else s for one, s in mine)

    shared = sum(c.seconds for one, c in costs if not one.model)
    return shared + max(way(model) for model in models)


def warnings(study: Study, totals: Mapping[str, Any]) -> list[str]:
    """One line for each limit of the config that the totals pass."""
    units = {"disk_gb": "GB of disk", "memory_gb": "GB of memory in a job", "hours": "hours", "files": "files"}
    found = []
    for name, unit in units.items():
        limit = getattr(study.limits, name)
        if limit is not None and totals[name] > limit:
            found.append(f"limits.{name}: {totals[name]:,.4g} {unit} planned, {limit:,.4g} allowed")
    return found


def _notes(study: Study, works: Mapping[str, Work]) -> list[str]:
    """What the numbers leave out, and why."""
    found = []
    for name, work in works.items():
        if name in study.dumped:
            found.append(f"{name}: its dumps are not opened for a plan, so their rows and moments are not counted")
        elif name in study.perceived:
            found.append(f"{name}: its images or clips are not counted, so its passes and rows are not")
        elif work.shape is None:
            found.append(f"{name}: its config.json is not here yet, so its passes, rows and moments are not counted")
        elif not work.shape.known:
            found.append(f"{name}: {work.shape.family} is no tested family, its parameters are guessed")
    if study.capture.moments_tokens == "all" and study.tokens.max_sequences is None:
        found.append("capture.moments_tokens: all reads more sequences than counted here; tokens.max_sequences is null")
    if study.storage.cache:
        most = max(work.cache_bytes / max(work.checkpoints, 1) for work in works.values()) / _GB
        found.append(f"each capture also keeps the rows of its checkpoint here until they are sent: up to {size(most)}")
    found.append("capture is timed on the CPU; text is not counted, and a corpus of gigabytes takes its own time")
    return found
