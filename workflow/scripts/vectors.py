"""Rows and moments of one dump, every bucket, in the stores that a capture would have written."""

from pathlib import Path

from isotrace.job import job
from isotrace.vectors.run import import_dump

with job(snakemake) as spec:
    import_dump(
        Path(snakemake.input.audit),
        cache=Path(snakemake.output.cache),
        moments=Path(snakemake.output.moments),
        heads=Path(snakemake.output.heads),
        spec=spec,
        rows_at=snakemake.resources.rows_at or None,
    )
