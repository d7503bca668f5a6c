"""All audits of a model as one lock: duplicates, shared tensors, distances to neighbours."""

import json
from pathlib import Path

from isotrace.checkpoints.lock import lock, refuse_broken
from isotrace.checkpoints.locked import require_locked
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    audits = [json.loads(Path(path).read_text(encoding="utf-8")) for path in snakemake.input.audits]
    known = {name: spec[name] for name in ("drawn", "left_out")}
    found = lock(spec["model"], spec["provider"], spec["total_steps"], audits, **known)
    refuse_broken(audits, spec["on_broken"])
    require_locked(found, snakemake.input.committed or None)
    write_json(Path(snakemake.output.lock), found)
