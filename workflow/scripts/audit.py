"""What checkpoint folders really hold: files, tensors, digests, or why one is broken."""

from pathlib import Path

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    root = Path(snakemake.input[0]).parent if spec["trained"] else Path()
    for output, known in zip(snakemake.output, spec["checkpoints"], strict=True):
        folder = root / known.pop("folder")
        source = {"path": str(folder), "revision": None, "subfolder": None, "commit": None}
        audit = audit_checkpoint(folder, known | {"objective": spec["objective"], "source": source})
        write_json(Path(output), audit | {"objective": spec["objective"]})
