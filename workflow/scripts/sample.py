"""The positions read at every checkpoint of a model, with masks where it is a masked one."""

from pathlib import Path

from isotrace.corpus.stores import write_sample
from isotrace.job import job

with job(snakemake) as spec:
    write_sample(Path(snakemake.output.manifest), Path(snakemake.input.tokens), spec)
