"""The fixed tangent basis of a model by one method, and those that leave one early checkpoint out."""

from pathlib import Path

from isotrace.bases import fit_bases, write_bases
from isotrace.job import job

with job(snakemake) as spec:
    manifests = [Path(path) for path in snakemake.input.moments]
    caches = [Path(path) for path in snakemake.input.cache]
    fixed, left_out, attributes = fit_bases(manifests, caches, spec)
    write_bases(Path(snakemake.output.bases), fixed, left_out, attributes)
