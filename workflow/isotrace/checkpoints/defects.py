"""What the checkpoints of a series say of each other: copies, other dtypes, wrong places, other initialisations.

Our choice, after defects reported for public series (Pythia, OLMo 2); no numpy, for a lock is made of small lists.
"""

import base64
import math
import operator
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

Audit = dict[str, Any]
Defect = tuple[str, str, str]
"""finding, severity (error | warning), detail"""

JUMP = 3.0
SWAP, SWAP_AT_END = 1.2, 1.3
UNRELATED, RELATED = 0.1, 0.5
_SHOWN = 3


def own_defects(audit: Audit) -> Iterator[Defect]:
    """What one checkpoint says of itself, compared with nothing but its own files."""
    if audit["status"] == "broken":
        yield "broken", "error", audit["reason"]
    if audit["status"] == "duplicate":
        yield "duplicate", "warning", audit["reason"]
    saved = audit["saved_step"]
    if saved is not None and saved != audit["step"]:
        yield "other_step", "warning", f"its trainer_state.json says step {saved}"
    if audit["head_differs"]:
        yield "untied_head", "warning", "its config ties the head to the embedding, but both are stored and differ"


def shared_defects(distinct: Sequence[Audit]) -> dict[str, list[Defect]]:
    """Tensors that two checkpoints hold alike, told at the later; those that all hold are told once, as frozen."""
    frozen = set(frozen_tensors(distinct))
    told: dict[str, list[Defect]] = {}
    if frozen:
        detail = f"{len(frozen)} tensors are the same in every checkpoint: {_some(sorted(frozen))}"
        told[distinct[0]["id"]] = [("frozen_tensors", "warning", detail)]
    for audit in distinct:
        for other, every in audit["shared_tensors_with"].items():
            names = [name for name in every if name not in frozen]
            if names:
                detail = f"{len(names)} tensors are those of {other}: {_some(names)}"
                told.setdefault(audit["id"], []).append(("shared_tensors", "warning", detail))
    return told


def frozen_tensors(distinct: Sequence[Audit]) -> list[str]:
    """Names of tensors that three or more checkpoints all hold byte for byte, constant ones left out."""
    if len(distinct) < 3:
        return []
    first = distinct[0]
    return [
        name
        for name, digest in first["tensor_digests"].items()
        if name not in first["constant_tensors"] and all(a["tensor_digests"].get(name) == digest for a in distinct)
    ]


def dtype_defects(loaded: Sequence[Audit]) -> dict[str, list[Defect]]:
    """Checkpoints stored in other dtypes than most of their series; of equally many, the plainer mix is the norm.

    A mix that all share, such as float32 norms beside bfloat16 matrices, is how that series is stored, and no defect.
    """
    mixes = Counter(_mix(audit) for audit in loaded)
    if len(mixes) < 2:
        return {}
    usual = max(mixes, key=lambda mix: (mixes[mix], -len(mix), mix))
    return {
        audit["id"]: [("mixed_dtype", "warning", f"stored as {_said(_mix(audit))}; the series as {_said(usual)}")]
        for audit in loaded
        if _mix(audit) != usual
    }


def _mix(audit: Audit) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(audit["dtypes"].items()))


def _said(mix: tuple[tuple[str, int], ...]) -> str:
    return ", ".join(f"{n} {dtype}" for dtype, n in mix) or "unknown"


def place_defects(distinct: Sequence[Audit]) -> dict[str, list[Defect]]:
    """Checkpoints that lie where their step does not: their matrices' distances, estimated to some 2 %.

    out_of_place: both neighbours are over three times farther from it than from each other. out_of_order: the way
    through the series is over 1.2 times shorter around a pair when the two are swapped (1.3 at an end, where it is one
    distance against one); in the demo the factor is at most 0.8. Neither is asked of checkpoints that share a
    step, as seeds do.
    """
    told: dict[str, list[Defect]] = {}
    for before, middle, after in zip(distinct, distinct[1:], distinct[2:], strict=False):
        across = distance(before, after)
        if min(distance(before, middle), distance(middle, after)) > JUMP * across:
            detail = f"far from {before['id']} and {after['id']}, which are close to each other"
            told.setdefault(middle["id"], []).append(("out_of_place", "warning", detail))
    for at in range(len(distinct) - 1):
        first, second = distinct[at : at + 2]
        if not {first["id"], second["id"]} & set(told) and _swapped(distinct, at):
            detail = f"it and {second['id']} lie as if swapped"
            told.setdefault(first["id"], []).append(("out_of_order", "warning", detail))
    return told


def _swapped(series: Sequence[Audit], at: int) -> bool:
    before, first, second, after = (_at(series, at + k) for k in (-1, 0, 1, 2))
    assert first is not None
    assert second is not None
    near = [audit for audit in (before, after) if audit is not None]
    steps = [audit["step"] for audit in (before, first, second, after) if audit is not None]
    if not near or len(set(steps)) < len(steps):
        return False
    given = (distance(before, first) if before else 0.0) + (distance(second, after) if after else 0.0)
    swapped = (distance(before, second) if before else 0.0) + (distance(first, after) if after else 0.0)
    return given > (SWAP if len(near) == 2 else SWAP_AT_END) * swapped


def start_defects(distinct: Sequence[Audit], drawn: Sequence[str] = ()) -> dict[str, list[Defect]]:
    """Where a series begins anew: two neighbours whose matrices are uncorrelated, though training is slow there.

    other_init: the first checkpoint is uncorrelated (below 0.1, three standard errors) with the second, while the
    second and third, at least as many steps apart, are correlated (above 0.5). other_run: the same at a later pair,
    whose first is also correlated with the checkpoint before. ``drawn`` are ids whose weights this study drew itself.
    A run whose first stored step lies so late that nothing of its start is left and whose next ones are as far apart
    would be told as well; in runs with evenly spaced or widening steps the first stretch forgets least.
    """
    told: dict[str, list[Defect]] = {}
    for at in range(len(distinct) - 2):
        first, second, third = distinct[at : at + 3]
        before = _at(distinct, at - 1)
        gaps = second["step"] - first["step"], third["step"] - second["step"]
        if not 0 < gaps[0] <= gaps[1] or first["id"] in drawn:
            continue
        across, after = correlation(first, second), correlation(second, third)
        if across < UNRELATED and after > RELATED and (before is None or correlation(before, first) > RELATED):
            name, where = ("other_init", first) if before is None else ("other_run", second)
            detail = (
                f"the matrices of {first['id']} and {second['id']} are uncorrelated ({across:.2f}), "
                f"those of {second['id']} and {third['id']} are not ({after:.2f})"
            )
            told[where["id"]] = [(name, "warning", detail)]
    return told


def distance(a: Audit, b: Audit) -> float:
    """|a - b| of two checkpoints' matrices, estimated from their long sketches to some 2 %."""
    return math.dist(unpacked(a["matrix_sketch"]), unpacked(b["matrix_sketch"]))


def correlation(a: Audit, b: Audit) -> float:
    """Cosine between two checkpoints' matrices, estimated from their long sketches to 0.03; 0 where one is zero."""
    x, y = unpacked(a["matrix_sketch"]), unpacked(b["matrix_sketch"])
    norms = math.hypot(*x) * math.hypot(*y)
    return sum(map(operator.mul, x, y)) / norms if norms else 0.0


def unpacked(text: str) -> tuple[float, ...]:
    """Numbers from base64 of little-endian float32."""
    content = base64.b64decode(text)
    return struct.unpack(f"<{len(content) // 4}f", content)


def _at(series: Sequence[Audit], index: int) -> Audit | None:
    return series[index] if 0 <= index < len(series) else None


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
