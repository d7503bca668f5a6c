"""What one checkpoint's folder really holds: files, tensors, digests, or why it is broken."""

from pathlib import Path

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    first = Path(snakemake.input[0])
    folder = (first if first.is_dir() else first.parent) / spec["within"]
    source = {"path": str(folder), "revision": None, "subfolder": None, "commit": None}
    audit = audit_checkpoint(folder, spec | {"source": source})
    write_json(Path(snakemake.output.audit), audit | {"objective": spec["objective"]})
