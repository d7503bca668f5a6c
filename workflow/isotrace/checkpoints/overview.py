"""A lock as a table that a person reads: a row a checkpoint, in words and short numbers.

What stands in it is our choice; `tables/audit` holds the findings alone, for programs.
"""

from typing import Any

COLUMNS = (
    "checkpoint",
    "step",
    "tokens",
    "commit",
    "dtype",
    "digest",
    "copy of",
    "shares tensors with",
    "distance",
    "correlation",
    "findings",
)
_MISPLACED = ("out_of_place", "out_of_order", "other_init", "other_run")
_SHOWN = 160


def overview(lock: dict[str, Any]) -> list[dict[str, str]]:
    """Rows of ``COLUMNS``, as text, by step; what was left out beside the checkpoints follows.

    distance and correlation are to the distinct checkpoint before, with `!` where a finding says that it lies in the
    wrong place; a digest is cut to 12 digits; missing and unexpected keys stand in the findings of a broken one.
    """
    rows = [_row(checkpoint) for checkpoint in lock["checkpoints"]]
    for one in lock["left_out"]:
        rows.append(dict.fromkeys(COLUMNS, "") | {"checkpoint": one["name"], "findings": f"left_out: {one['reason']}"})
    return rows


def _row(c: dict[str, Any]) -> dict[str, str]:
    mark = " !" if any(f["finding"] in _MISPLACED for f in c["findings"]) else ""
    shares = (f"{other} ({len(names)})" for other, names in c["shared_tensors_with"].items())
    values = (
        c["id"],
        f"{c['step']:,}",
        "" if c["tokens_seen"] is None else f"{c['tokens_seen']:,}",
        (c["source"]["commit"] or "")[:12],
        " + ".join(c["dtypes"]) or c["dtype"] or "",
        (c["tensors_digest"] or "")[:12],
        c["duplicate_of"] or "",
        ", ".join(shares),
        _number(c["neighbour_distance"]) + mark,
        _number(c["neighbour_correlation"]),
        "; ".join(_short(f"{f['finding']}: {f['detail']}") for f in c["findings"]),
    )
    return dict(zip(COLUMNS, values, strict=True))


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
