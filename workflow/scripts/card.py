"""The card of every model: is its representation collapsing, since when, and why."""

from pathlib import Path

from isotrace.card.made import card
from isotrace.card.page import page
from isotrace.card.scores import read_scores
from isotrace.job import job
from isotrace.results import read_locks, read_tables

with job(snakemake) as spec:
    tables = read_tables(snakemake.input.tables, read_locks(snakemake.input.locks))
    for path in map(Path, snakemake.output):
        scores = read_scores(spec["scores"][path.stem]) if path.stem in spec["scores"] else None
        path.write_text(page(card(tables, path.stem, scores, spec), spec["study"]), encoding="utf-8")
