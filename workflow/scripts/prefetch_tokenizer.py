"""The tokenizer of a hub series and the config.json of its first checkpoint, at their commits."""

from pathlib import Path

from isotrace.hub.prefetch import prefetch_beside
from isotrace.job import job

with job(snakemake, online=True) as spec:
    folder = Path(snakemake.output.manifest).parent
    shared = Path(snakemake.resources.shared) if snakemake.resources.shared else None
    slots, code = snakemake.resources.downloads, spec.get("code_files")
    prefetch_beside(spec["downloads"], folder, spec["model"], code=code, downloads=slots, shared=shared)
