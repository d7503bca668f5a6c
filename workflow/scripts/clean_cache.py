"""Row stores and their manifests removed, in a bucket too."""

from pathlib import Path

from isotrace.cleaning import clean_cache
from isotrace.job import job

with job(snakemake):
    clean_cache(Path(snakemake.params.cache), snakemake.resources.rows_at or None)
