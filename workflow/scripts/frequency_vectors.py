"""Token frequency against distance to the centroid of dumped vectors; of an input embedding there is nothing."""

from pathlib import Path

from isotrace.job import job
from isotrace.readers import model_sites
from isotrace.results import write_stage
from isotrace.store import is_tombstone
from isotrace.vectors.frequency import dumped_frequency

with job(snakemake) as spec:
    cache = Path(snakemake.input.cache)
    table = None if is_tombstone(cache) else dumped_frequency(cache, spec)
    write_stage(snakemake.output.table, table, "frequency", model_sites(cache))
    write_stage(snakemake.output.points, None, "frequency_points")
