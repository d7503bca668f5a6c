"""What a paper takes from the study: macros, tables and a page that shows them with every figure."""

from pathlib import Path

from isotrace.job import job
from isotrace.paper.write import write_paper
from isotrace.results import read_declared, read_locks, read_tables

with job(snakemake) as spec:
    locks = read_locks(snakemake.input.locks)
    write_paper(
        Path(snakemake.output.macros).parent,
        tables=read_tables(snakemake.input.tables, locks),
        locks=locks,
        sentences={c["claim"]: c["sentence"] for c in read_declared(snakemake.input.declared)["claims"]},
        spec=spec,
    )
