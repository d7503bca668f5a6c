"""The lock of a series: its audits in order, duplicates and shared tensors named, distances between neighbours.

What counts as a defect is our choice, after defects reported for public series (Pythia, OLMo 2).
"""

import math
from typing import Any

_JUMP = 3.0


def lock(model: str, provider: str, total_steps: int, audits: list[dict[str, Any]]) -> dict[str, Any]:
    """``{model, provider, total_steps, checkpoints}``, checkpoints by step, each an audit with what others say of it.

    Of checkpoints with equal tensors the first stays ``ok``; later ones are ``duplicate`` with ``duplicate_of``.
    ``shared_tensors_with`` maps the id of an earlier, different checkpoint to the tensors that both hold byte for
    byte (constant tensors, as a fresh norm's ones, left out). ``neighbour_distance`` is |a - b| / |b| to the last
    distinct checkpoint b before a, from sketches (a relative error of about 12 %); None for the first.
    """
    ordered = sorted(audits, key=lambda audit: (audit["step"], audit["id"]))
    checkpoints: list[dict[str, Any]] = []
    for audit in ordered:
        distinct = [earlier for earlier in checkpoints if earlier["status"] == "ok"]
        checkpoints.append({**audit, **_compared(audit, distinct)})
    return {"model": model, "provider": provider, "total_steps": total_steps, "checkpoints": checkpoints}


def _compared(audit: dict[str, Any], distinct: list[dict[str, Any]]) -> dict[str, Any]:
    compared: dict[str, Any] = {"duplicate_of": None, "shared_tensors_with": {}, "neighbour_distance": None}
    if audit["status"] != "ok":
        return compared
    if distinct:
        compared["neighbour_distance"] = distance(audit, distinct[-1])
    same = [earlier["id"] for earlier in distinct if earlier["tensors_digest"] == audit["tensors_digest"]]
    if same:
        reason = f"the same tensors as {same[0]}"
        return {**compared, "status": "duplicate", "reason": reason, "duplicate_of": same[0]}
    shared = {earlier["id"]: _shared(audit, earlier) for earlier in distinct}
    compared["shared_tensors_with"] = {identifier: names for identifier, names in shared.items() if names}
    return compared


def _shared(a: dict[str, Any], b: dict[str, Any]) -> list[str]:
    constant = set(a["constant_tensors"])
    return sorted(
        name
        for name, digest in a["tensor_digests"].items()
        if name not in constant and b["tensor_digests"].get(name) == digest
    )


def distance(a: dict[str, Any], b: dict[str, Any]) -> float | None:
    """|a - b| / |b| estimated from two audits' sketches; None if either is broken or b is all zero."""
    if not a["sketch"] or not b["sketch"] or not b["norm"]:
        return None
    return math.dist(a["sketch"], b["sketch"]) / float(b["norm"])


def findings(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows {model, checkpoint, step, finding, severity (error | warning), detail} of what is wrong with a series.

    broken: it cannot be loaded; duplicate; shared_tensors: part of it is byte for byte part of another;
    out_of_place: both neighbours are over three times farther from it than from each other.
    """
    checkpoints = lock["checkpoints"]
    rows = [_row(lock, checkpoint, *found) for checkpoint in checkpoints for found in _own_findings(checkpoint)]
    distinct = [checkpoint for checkpoint in checkpoints if checkpoint["status"] == "ok"]
    for before, middle, after in zip(distinct, distinct[1:], distinct[2:], strict=False):
        if _out_of_place(before, middle, after):
            detail = f"far from {before['id']} and {after['id']}, which are close to each other"
            rows.append(_row(lock, middle, "out_of_place", "warning", detail))
    return sorted(rows, key=lambda row: (row["step"], row["checkpoint"], row["finding"]))


def _own_findings(checkpoint: dict[str, Any]) -> list[tuple[str, str, str]]:
    if checkpoint["status"] == "broken":
        return [("broken", "error", checkpoint["reason"])]
    if checkpoint["status"] == "duplicate":
        return [("duplicate", "warning", checkpoint["reason"])]
    return [
        ("shared_tensors", "warning", f"{len(names)} tensors are those of {other}: {', '.join(names[:3])}")
        for other, names in checkpoint["shared_tensors_with"].items()
    ]


def _row(lock: dict[str, Any], checkpoint: dict[str, Any], finding: str, severity: str, detail: str) -> dict[str, Any]:
    where = {"model": lock["model"], "checkpoint": checkpoint["id"], "step": checkpoint["step"]}
    return {**where, "finding": finding, "severity": severity, "detail": detail}


def _out_of_place(before: dict[str, Any], middle: dict[str, Any], after: dict[str, Any]) -> bool:
    across = math.dist(before["sketch"], after["sketch"])
    nearer = min(math.dist(before["sketch"], middle["sketch"]), math.dist(middle["sketch"], after["sketch"]))
    return nearer > _JUMP * across
