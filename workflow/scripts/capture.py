"""Rows and moments of one checkpoint, every bucket, from one forward and backward pass a batch."""

from pathlib import Path

from isotrace.capture.run import capture_checkpoint
from isotrace.job import job

with job(snakemake) as spec:
    capture_checkpoint(
        Path(snakemake.input.audit),
        Path(snakemake.input.sample),
        cache=Path(snakemake.output.cache),
        moments=Path(snakemake.output.moments),
        heads=Path(snakemake.output.heads),
        spec=spec,
        rows_at=snakemake.resources.rows_at or None,
    )
