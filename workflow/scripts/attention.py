"""Query/key drift and sharpness of one checkpoint, by layer, head and bucket."""

from pathlib import Path

from isotrace.capture.run import attention_checkpoint
from isotrace.job import job
from isotrace.results import write_stage

with job(snakemake) as spec:
    frame = attention_checkpoint(Path(snakemake.input.audit), Path(snakemake.input.sample), spec)
    write_stage(snakemake.output.table, frame, "attention")
