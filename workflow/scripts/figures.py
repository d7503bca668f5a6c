"""One figure from the study's tables: PDF, PNG and the CSV of what is drawn."""

from isotrace.figures.registry import find
from isotrace.figures.style import save
from isotrace.job import job
from isotrace.results import read_tables

with job(snakemake) as spec:
    figure, drawn = find(spec["figure"])(read_tables(snakemake.input.tables), spec["options"])
    save(figure, drawn, pdf=snakemake.output.pdf, png=snakemake.output.png, csv=snakemake.output.csv)
