"""One figure from the study's tables: PDF, PNG and the CSV of what is drawn."""

from isotrace.figures.frames import one_a_group
from isotrace.figures.registry import find
from isotrace.figures.style import save
from isotrace.job import job
from isotrace.results import read_locks, read_marked

with job(snakemake) as spec:
    tables = read_marked(snakemake.input.tables, read_locks(snakemake.input.locks))
    figure, drawn = find(spec["figure"])(one_a_group(tables, spec["groups"]), spec["options"])
    save(figure, drawn, pdf=snakemake.output.pdf, png=snakemake.output.png, csv=snakemake.output.csv)
