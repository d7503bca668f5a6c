"""The lock of a series: its audits in order, duplicates and shared tensors named, distances between neighbours.

What counts as a defect is in ``defects`` (our choice).
"""

import math
from collections.abc import Sequence
from typing import Any

from isotrace.checkpoints.defects import (
    correlation,
    dtype_defects,
    own_defects,
    place_defects,
    shared_defects,
    start_defects,
)
from isotrace.errors import DataError

_OF_AUDITS_ONLY = ("matrix_sketch",)
"""Needed to compare audits; left out of a lock, which people read and commit."""


def lock(
    model: str,
    provider: str,
    total_steps: int,
    audits: list[dict[str, Any]],
    *,
    drawn: Sequence[str] = (),
    left_out: Sequence[dict[str, str]] = (),
) -> dict[str, Any]:
    """``{model, provider, total_steps, checkpoints, left_out}``, checkpoints by step: audits with what others say.

    drawn: ids whose weights this study drew itself; left_out: {name, reason} of what lies beside the checkpoints.
    Of checkpoints with equal tensors the first stays ``ok``; later ones are ``duplicate`` with ``duplicate_of``.
    ``shared_tensors_with`` maps the id of an earlier, different checkpoint to the tensors that both hold byte for
    byte (constant tensors, as a fresh norm's ones, left out). ``neighbour_distance`` is |a - b| / |b| to the last
    distinct checkpoint b before a, from sketches (a relative error of about 9 %), ``neighbour_correlation`` the cosine
    between their matrices (an error of 0.03); None for the first. ``findings``: {finding, severity, detail} of each.
    """
    ordered = sorted(audits, key=lambda audit: (audit["step"], audit["id"]))
    checkpoints: list[dict[str, Any]] = []
    for audit in ordered:
        distinct = [earlier for earlier in checkpoints if earlier["status"] == "ok"]
        checkpoints.append({**audit, **_compared(audit, distinct)})
    found = _found(checkpoints, drawn)
    kept = [
        {**{k: v for k, v in c.items() if k not in _OF_AUDITS_ONLY}, "findings": found[c["id"]]} for c in checkpoints
    ]
    return {
        "model": model,
        "provider": provider,
        "total_steps": total_steps,
        "checkpoints": kept,
        "left_out": list(left_out),
    }


def _compared(audit: dict[str, Any], distinct: list[dict[str, Any]]) -> dict[str, Any]:
    compared: dict[str, Any] = {
        "duplicate_of": None,
        "shared_tensors_with": {},
        "neighbour_distance": None,
        "neighbour_correlation": None,
    }
    if audit["status"] != "ok":
        return compared
    if distinct:
        compared["neighbour_distance"] = relative_distance(audit, distinct[-1])
        if audit["matrix_sketch"]:  # vectors have none
            compared["neighbour_correlation"] = round(correlation(audit, distinct[-1]), 4)
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


def relative_distance(a: dict[str, Any], b: dict[str, Any]) -> float | None:
    """|a - b| / |b| estimated from two audits' sketches; None if either is broken or b is all zero."""
    if not a["sketch"] or not b["sketch"] or not b["norm"]:
        return None
    return math.dist(a["sketch"], b["sketch"]) / float(b["norm"])


def _found(checkpoints: list[dict[str, Any]], drawn: Sequence[str]) -> dict[str, list[dict[str, str]]]:
    """What is wrong with each checkpoint, by id."""
    loaded = [c for c in checkpoints if c["status"] != "broken"]
    distinct = [c for c in checkpoints if c["status"] == "ok"]
    parts = [
        {c["id"]: list(own_defects(c)) for c in checkpoints},
        dtype_defects([c for c in loaded if c["id"] not in drawn]),
        shared_defects(distinct),
        place_defects(distinct),
        start_defects(distinct, drawn),
    ]
    return {
        c["id"]: [
            {"finding": finding, "severity": severity, "detail": detail}
            for part in parts
            for finding, severity, detail in part.get(c["id"], [])
        ]
        for c in checkpoints
    }


def refuse_broken(audits: list[dict[str, Any]], on_broken: str) -> None:
    """DataError that names every broken one of these audits, where ``on_broken`` is ``error`` and not ``skip``."""
    broken = [f"{audit['id']}: {audit['reason']}" for audit in audits if audit["status"] == "broken"]
    if broken and on_broken == "error":
        raise DataError(f"on_broken is error: {'; '.join(broken)}")


def findings(lock: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows {model, checkpoint, step, finding, severity (error | warning), detail} of what is wrong with a series.

    Names beside the checkpoints that were left out follow, without a step.
    """
    model = lock["model"]
    rows = [
        {"model": model, "checkpoint": c["id"], "step": c["step"], **found}
        for c in lock["checkpoints"]
        for found in c["findings"]
    ]
    rows.sort(key=lambda row: (row["step"], row["checkpoint"], row["finding"]))
    beside = [
        {"model": model, "checkpoint": one["name"], "step": None, "finding": "left_out", "severity": "warning"}
        | {"detail": one["reason"]}
        for one in lock["left_out"]
    ]
    return rows + beside
