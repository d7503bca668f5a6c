"""Tests of the declared families over training."""

from isotrace.dynamics.table import dynamics_table
from isotrace.job import job
from isotrace.results import read_declared, read_locks, read_tables, write_table

with job(snakemake) as spec:
    tables = read_tables(snakemake.input.tables, read_locks(snakemake.input.locks))
    frame = dynamics_table(tables, read_declared(snakemake.input.declared), spec)
    write_table(snakemake.output, frame, "dynamics")
