"""A checkpoint's files from the hub, at its commit, checked; the only jobs that use a network."""

from pathlib import Path

from isotrace.hub.prefetch import prefetch
from isotrace.job import job

with job(snakemake, online=True) as spec:
    folder = Path(snakemake.output.folder)
    shared = Path(snakemake.resources.shared) if snakemake.resources.shared else None
    slots, code = snakemake.resources.downloads, spec.get("code_files")
    prefetch(spec["download"], folder, spec["model"], code=code, downloads=slots, shared=shared)
