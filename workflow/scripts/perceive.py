"""Rows and moments of one checkpoint that reads images, sound or characters, every bucket."""

from pathlib import Path

from isotrace.job import job
from isotrace.perception.run import perceive

with job(snakemake) as spec:
    perceive(
        Path(snakemake.input.audit),
        documents=Path(snakemake.input.documents) if snakemake.input.documents else None,
        processor=Path(snakemake.input.processor).parent if snakemake.input.processor else None,
        cache=Path(snakemake.output.cache),
        moments=Path(snakemake.output.moments),
        heads=Path(snakemake.output.heads),
        spec=spec,
        rows_at=snakemake.resources.rows_at or None,
    )
