"""The bases refitted at every checkpoint, in one file."""

from pathlib import Path

from isotrace.bases import joined, moving_basis, moving_maps, write_moving
from isotrace.errors import DataError
from isotrace.job import job
from isotrace.store import is_tombstone

with job(snakemake) as spec:
    moments = [Path(path) for path in snakemake.input.moments if not is_tombstone(Path(path))]
    caches = {Path(path).stem: Path(path) for path in snakemake.input.cache}
    if not moments:
        raise DataError("no checkpoint can be read, so there is no basis; see the audit table")
    bases = {}
    for path in moments:
        sites = moving_basis(path, caches.get(path.stem), spec["method"], spec)
        bases[path.stem] = joined(sites, moving_maps(path, [spec["method"]], spec))
    attributes = {"pool_center": spec["pool_center"], "pool_scale": spec["pool_scale"]}
    write_moving(Path(snakemake.output.bases), bases, attributes)
