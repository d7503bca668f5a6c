"""Token frequency against norm and distance to the centroid, static and contextual."""

from pathlib import Path

from isotrace.checkpoints.embedding import read_embedding
from isotrace.corpus.stores import read_passes
from isotrace.geometry.frequency import frequency_points, frequency_table
from isotrace.job import job
from isotrace.readers import model_sites, read_contextual
from isotrace.results import write_stage
from isotrace.store import is_tombstone, open_store

with job(snakemake) as spec:
    cache, table, points = Path(snakemake.input.cache), None, None
    sites = model_sites(cache)
    if not is_tombstone(cache):
        passes = read_passes(Path(snakemake.input.sample))
        embedding = read_embedding(Path(snakemake.input.audit))
        known = {"embedding": embedding, "counts": passes.counts, "excluded": passes.special_ids}
        contextual = read_contextual(open_store(cache), spec["buckets"])
        table = frequency_table(**known, contextual=contextual, spec=spec)
        points = frequency_points(**known, seed=spec["seed"])
    write_stage(snakemake.output.table, table, "frequency", sites)
    write_stage(snakemake.output.points, points, "frequency_points")
