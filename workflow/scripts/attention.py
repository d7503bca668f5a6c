"""Query/key drift and sharpness of one checkpoint, by layer, head and bucket."""

from pathlib import Path

from isotrace.geometry.attention import attention_table
from isotrace.job import job
from isotrace.readers import read_heads
from isotrace.results import write_stage
from isotrace.store import is_tombstone

with job(snakemake):
    heads = Path(snakemake.input.heads)
    frame = None if is_tombstone(heads) else attention_table(read_heads(heads))
    write_stage(snakemake.output.table, frame, "attention")
