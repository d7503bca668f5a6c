"""The declared claims, each with its estimate and verdict."""

from isotrace.dynamics.claims import claims_table
from isotrace.job import job
from isotrace.results import read_declared, read_locks, read_tables, write_table

with job(snakemake) as spec:
    tables = read_tables(snakemake.input.tables, read_locks(snakemake.input.locks))
    frame = claims_table(tables, read_declared(snakemake.input.declared), spec)
    write_table(snakemake.output, frame, "claims")
