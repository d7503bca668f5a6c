"""ByT5's tokenizer, which needs no training: an id a byte."""

from pathlib import Path

from isotrace.corpus.tokenizer import write_byte_tokenizer
from isotrace.job import job

with job(snakemake):
    write_byte_tokenizer(Path(snakemake.output.tokenizer).parent)
