"""What checkpoint folders really hold: files, tensors, digests, or why one is broken."""

from pathlib import Path

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    for output, known in zip(map(Path, snakemake.output), spec["checkpoints"], strict=True):
        results = output.parents[2] if known.pop("made") else Path()
        folder = results / known.pop("folder")
        source = {"path": str(folder), "revision": None, "subfolder": None, "commit": None} | known.pop("origin")
        audit = audit_checkpoint(folder, known | {"objective": spec["objective"], "source": source})
        write_json(output, audit | {"objective": spec["objective"]})
