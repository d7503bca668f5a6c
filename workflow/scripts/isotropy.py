"""Isotropy, whole and with the tangent or matched normals removed: a table a bucket."""

from pathlib import Path

from isotrace.analysed import Analysed
from isotrace.geometry.ablation import isotropy_table
from isotrace.job import job
from isotrace.readers import pooled_covariance, read_bucket
from isotrace.results import write_stage

with job(snakemake) as spec:
    names = [Path(output).stem for output in snakemake.output]
    opened = Analysed.open(snakemake.input, spec, names)
    pooled = {} if opened.moments is None else pooled_covariance(opened.moments, spec["buckets"])
    for name, output in zip(names, snakemake.output, strict=True):
        frame = None
        if opened.cache is not None:
            bucket = read_bucket(opened.cache, name, "eval")
            frame = opened.told(isotropy_table(bucket, opened.bases, spec, pooled=pooled), "isotropy")
        write_stage(output, frame, "isotropy", opened.sites)
