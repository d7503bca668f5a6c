"""What a dump of vectors really holds: files, digests of its arrays, or why it is broken."""

from pathlib import Path

from isotrace.job import job
from isotrace.store import write_json
from isotrace.vectors.audit import audit_dump

with job(snakemake) as spec:
    folder = spec["folder"]
    source = {"path": folder, "revision": None, "subfolder": None, "commit": None}
    write_json(Path(snakemake.output.audit), audit_dump(folder, spec | {"source": source}))
