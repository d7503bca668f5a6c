"""The tokenizer of a hub series and the config.json of its first checkpoint, at their commits."""

from pathlib import Path

from isotrace.hub.prefetch import prefetch_beside
from isotrace.job import job

with job(snakemake, online=True) as spec:
    folder = Path(snakemake.output.manifest).parent
    prefetch_beside(spec["downloads"], folder, spec["model"], downloads=snakemake.resources.downloads)
