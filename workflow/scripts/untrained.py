"""Activations of untrained models of one architecture, by site and bucket."""

from pathlib import Path

from isotrace.capture.untrained import untrained_table
from isotrace.job import job
from isotrace.results import write_model

with job(snakemake) as spec:
    frame, sites = untrained_table(Path(snakemake.input.like), Path(snakemake.input.sample), spec)
    write_model(snakemake.output.table, frame, "untrained", sites)
