"""The plan of a study on this machine: measured once, planned, written beside the results, as text."""

import json
import os
from pathlib import Path

from isotrace.errors import DataError
from isotrace.plan import plan
from isotrace.planning.calibration import Calibration, calibrate, calibration_of
from isotrace.planning.lines import text
from isotrace.recapture import note, rows_of
from isotrace.store import write_json
from isotrace.study import Study


def show(study: Study, results: Path, *, cores: int) -> str:
    """Write ``plan.json`` into ``results`` and give the plan as text; DataError where a file cannot be read."""
    speed = calibrated(results / "calibration.json", study.execution.numeric_threads)
    found = plan(study, speed, cores=cores, results=results)
    found["notes"] += note(rows_of(study, results))
    write_json(results / "plan.json", found)
    return text(found)


def calibrated(file: Path, threads: int) -> Calibration:
    """The speed of this machine as the file says, measured and written where it does not for so many threads."""
    if file.is_file():
        try:
            known = calibration_of(json.loads(file.read_text(encoding="utf-8")), str(file))
        except ValueError:
            raise DataError(f"{file}: not readable as JSON; delete it, it is measured again in seconds") from None
        if known.threads == threads:
            return known
    measured = calibrate(threads, file.parent)
    write_json(file, measured.as_dict())
    return measured


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
