"""Query/key drift and sharpness of one checkpoint, by layer, head and bucket."""

from pathlib import Path

from isotrace.geometry.attention import attention_table
from isotrace.job import job
from isotrace.readers import read_heads
from isotrace.results import write_stage
from isotrace.store import read_manifest
from isotrace.tables import tombstone

with job(snakemake):
    heads = Path(snakemake.input.heads)
    reason = read_manifest(heads)["reason"]
    frame = tombstone("attention", reason) if reason else attention_table(read_heads(heads))
    write_stage(snakemake.output.table, frame, "attention")
