"""One figure from the study's tables: PDF, PNG, the CSV of what is drawn, and its caption."""

from isotrace.figures.frames import one_a_group
from isotrace.job import job
from isotrace.paper.drawing import draw
from isotrace.results import read_locks, read_marked

with job(snakemake) as spec:
    tables = one_a_group(read_marked(snakemake.input.tables, read_locks(snakemake.input.locks)), spec["groups"])
    draw(spec["figure"], tables, spec["options"], text=spec["caption"], files=dict(snakemake.output.items()))
