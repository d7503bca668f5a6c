"""Where large files are to lie apart from the results: a bucket that takes and gives back, a folder with room.

A bucket is asked by writing a small object, reading it and removing it, as a capture would (our choice).
"""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isotrace.doctor.findings import Finding, fail, ok
from isotrace.doctor.machine import existing
from isotrace.errors import IsotraceError
from isotrace.planning.lines import size
from isotrace.storage.bucket import Bucket
from isotrace.storage.shared import path_in_repo, shared_file
from isotrace.study import Study

PROBE = f"isotrace-doctor-{os.getpid()}"
_GB = 1e9


def reach(url: str) -> None:
    """Put a small object below ``url``, read it and remove it; DataError or ConfigError of one line."""
    bucket = Bucket(url)
    bucket.put_bytes(b"isotrace", PROBE)
    bucket.digest(PROBE)
    bucket.remove([PROBE])


def places(study: Study, totals: Mapping[str, Any], try_bucket: Callable[[str], None] = reach) -> Iterator[Finding]:
    """Nothing for a study whose files all lie below its results."""
    if study.storage.cache is not None:
        yield _bucket(study.storage.cache, totals["bucket_gb"], try_bucket)
    if study.storage.weights is not None:
        yield _weights(Path(study.storage.weights), to_fetch(study, Path(study.storage.weights)) / _GB)


def to_fetch(study: Study, folder: Path) -> int:
    """Bytes of the hub's files that the study reads and that the common folder lacks, each once."""
    sizes = {}
    for series in study.series.values():
        for download in series.downloads.values():
            for name, file in download["files"].items():
                path = path_in_repo(download["subfolder"], name)
                sizes[shared_file(folder, download["repo"], str(download["commit"]), path)] = file["bytes"]
    return sum(size for file, size in sizes.items() if not file.is_file())


def on_another_disk(study: Study, models: Mapping[str, Mapping[str, Any]], here: Path) -> float:
    """GB of a plan's weights that lie in a common folder on another file system than ``here``."""
    folder = study.storage.weights
    if folder is None or existing(Path(folder)).stat().st_dev == existing(here).stat().st_dev:
        return 0.0
    return float(sum(model["weights_gb"] for model in models.values() if model["kind"] == "hub"))


def _bucket(url: str, planned: float, try_bucket: Callable[[str], None]) -> Finding:
    try:
        try_bucket(url)
    except IsotraceError as error:
        return fail("bucket", str(error), "docs/how-to/object-storage.md: where credentials and the address come from")
    return ok("bucket", f"{url}: written, read and removed; up to {size(planned)} planned")


def _weights(folder: Path, missing: float) -> Finding:
    there = existing(folder)
    if missing and not (there.is_dir() and os.access(there, os.W_OK)):
        return fail("weights", f"{folder}: {there} cannot be written", "mend storage.weights, or ask for the right to")
    free = shutil.disk_usage(there).free / _GB
    said = f"{folder}: {size(missing)} to fetch, {size(free)} free"
    if missing > free:
        return fail("weights", said, "free space, or name another folder in storage.weights")
    return ok("weights", said)
