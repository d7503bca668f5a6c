"""A plan as text for a terminal: a line a model and a rule, totals, warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

_MODEL = ("model", "parameters", "width", "layers", "checkpoints", "tokens", "jobs", "files")
_SIZES = ("cache", "moments", "weights", "memory", "core time")


def text(plan: Mapping[str, Any]) -> str:
    """The plan as aligned columns; sizes in powers of ten."""
    totals, models, rules = plan["totals"], plan["models"], plan["jobs"]
    speed = plan["calibration"]
    table = [[*_MODEL, *_SIZES], *([name, *_row(model)] for name, model in models.items())]
    by_rule = [["rule", "jobs", "core time", "memory"]]
    by_rule += [[rule, str(r["n"]), duration(r["core_hours"]), size(r["memory_gb"])] for rule, r in rules.items()]
    cores = f"{plan['cores']} core{'s' if plan['cores'] > 1 else ''}"
    lines = [
        f"Plan of study {plan['study']}, were nothing done yet",
        "",
        *_columns(table),
        "",
        *_columns(by_rule),
        "",
        f"time      about {duration(totals['hours'])} on {cores} of this machine "
        f"({totals['jobs']:,} jobs, {duration(totals['core_hours'])} of one core)",
        f"memory    up to {size(totals['memory_gb'])} a job",
        *_kept(totals),
        f"files     about {totals['files']:,}",
        f"measured  {speed['gflops']:.0f} GFLOP/s on {speed['threads']} thread(s), a process starts in "
        f"{speed['start']:.2f} s, {speed['write']:.0f} MB/s written",
        *(f"note: {line}" for line in plan["notes"]),
        *(f"warning: {line}" for line in plan["warnings"]),
    ]
    return "\n".join(lines)


def _kept(totals: Mapping[str, Any]) -> list[str]:
    """What lies here, and what in a bucket."""
    away, objects = totals["bucket_gb"], totals["bucket_files"]
    rows = "" if objects else f"cache {size(totals['cache_gb'])}, "
    here = f"{rows}moments {size(totals['moments_gb'])}, weights {size(totals['weights_gb'])}"
    disk = f"disk      up to {size(totals['disk_gb'])}: {here}"
    return [disk, f"bucket    up to {size(away)} of rows in about {objects:,} objects"] if objects else [disk]


def _row(model: Mapping[str, Any]) -> list[str]:
    counts = ["parameters", "width", "layers", "checkpoints", "tokens", "jobs", "files"]
    sizes = ["cache_gb", "moments_gb", "weights_gb", "memory_gb"]
    known = ["?" if model[name] is None else _count(model[name]) for name in counts]
    return [*known, *(size(model[name]) for name in sizes), duration(model["core_hours"])]


def _count(number: int) -> str:
    """Whole below ten thousand, then with a letter: 12.3k, 160M, 1.7B."""
    for unit, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if number >= unit and number >= 1e4:
            return f"{number / unit:.3g}{letter}"
    return str(number)


def size(gigabytes: float) -> str:
    """MB below one GB, TB from a thousand."""
    if gigabytes >= 999.5:
        return f"{gigabytes / 1000:.3g} TB"
    return f"{gigabytes:.3g} GB" if gigabytes >= 0.9995 else f"{gigabytes * 1000:.0f} MB"


def duration(hours: float) -> str:
    """Seconds, minutes, hours or days, to two or three digits."""
    for unit, name, least in ((24.0, "days", 48.0), (1.0, "h", 1.5), (1 / 60, "min", 1.5 / 60)):
        if hours >= least:
            return f"{hours / unit:.3g} {name}"
    return f"{hours * 3600:.0f} s"


def _columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column flush left, numbers flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    aligned = [[row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])] for row in rows]
    return ["  ".join(row) for row in aligned]
