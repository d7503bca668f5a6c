"""Query/key drift, sharpness and sinks of one checkpoint, by layer, head and bucket, with intervals."""

from pathlib import Path

from isotrace.attention import attention_tables
from isotrace.job import job
from isotrace.results import write_stage

with job(snakemake) as spec:
    for stage, frame in attention_tables(Path(snakemake.input.heads), spec["confidence"]).items():
        write_stage(snakemake.output[stage.removeprefix("attention_")], frame, stage)
