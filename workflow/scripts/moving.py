"""The bases refitted at every checkpoint, in one file."""

from pathlib import Path

from isotrace.job import job
from isotrace.readers import moving_basis, write_moving
from isotrace.store import is_tombstone

with job(snakemake) as spec:
    manifests = [Path(path) for path in snakemake.input.moments]
    sealed = [path for path in manifests if not is_tombstone(path)]
    bases = {path.stem: moving_basis(path, spec["method"], spec) for path in sealed}
    attributes = {"pool_center": spec["pool_center"], "pool_scale": spec["pool_scale"]}
    write_moving(Path(snakemake.output.bases), bases, attributes)
