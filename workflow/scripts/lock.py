"""All audits of a model as one lock: duplicates, shared tensors, distances to neighbours."""

import json
from pathlib import Path

from isotrace.checkpoints.lock import lock
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    audits = [json.loads(Path(path).read_text(encoding="utf-8")) for path in snakemake.input.audits]
    write_json(Path(snakemake.output.lock), lock(spec["model"], spec["provider"], spec["total_steps"], audits))
