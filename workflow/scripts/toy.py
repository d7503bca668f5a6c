"""Cosines of what an untrained block makes of Gaussian inputs."""

from isotrace.geometry.toy import toy_table
from isotrace.job import job
from isotrace.results import write_table

with job(snakemake) as spec:
    write_table(snakemake.output, toy_table(spec), "toy")
