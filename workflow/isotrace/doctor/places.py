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
from isotrace.study import Study

PROBE = f"isotrace-doctor-{os.getpid()}"


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
        yield _weights(Path(study.storage.weights), totals["weights_gb"])


def _bucket(url: str, planned: float, try_bucket: Callable[[str], None]) -> Finding:
    try:
        try_bucket(url)
    except IsotraceError as error:
        return fail("bucket", str(error), "docs/how-to/object-storage.md: where credentials and the address come from")
    return ok("bucket", f"{url}: written, read and removed; up to {size(planned)} planned")


def _weights(folder: Path, planned: float) -> Finding:
    there = existing(folder)
    if not os.access(there, os.W_OK):
        return fail("weights", f"{folder}: {there} cannot be written", "mend storage.weights, or ask for the right to")
    free = shutil.disk_usage(there).free / 1e9
    said = f"{folder}: up to {size(planned)} to fetch, {size(free)} free"
    if planned > free:
        return fail("weights", said, "free space, or name another folder in storage.weights")
    return ok("weights", said)
