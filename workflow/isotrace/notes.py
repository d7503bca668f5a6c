"""What the audit of a study's checkpoints found, in a line a series for the terminal."""

from collections.abc import Iterable
from typing import Any

from isotrace.checkpoints.local import left_out
from isotrace.settings.sources import Local
from isotrace.study import Study


def audit_notes(locks: Iterable[dict[str, Any]], study: Study) -> list[str]:
    """A line a series that has broken or repeated checkpoints, or folders beside them that are no checkpoints."""
    notes = []
    for lock in locks:
        found = [f"{c['id']} is {c['status']}" for c in lock["checkpoints"] if c["status"] != "ok"]
        source = study.models[lock["model"]].source
        left = left_out(source.path) if isinstance(source, Local) else []
        found += [f"{one.name} is left out" for one in left]
        if found:
            notes.append(f"{lock['model']}: {', '.join(found)}; see tables/audit.csv")
    return notes
