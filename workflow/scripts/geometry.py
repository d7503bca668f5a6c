"""Companion measures of activations and gradients: a table a bucket."""

from pathlib import Path

from isotrace.analysed import Analysed, read_previous
from isotrace.geometry.companions import geometry_table
from isotrace.job import job
from isotrace.readers import read_bucket
from isotrace.results import write_stage

with job(snakemake) as spec:
    names = [Path(output).stem for output in snakemake.output]
    opened = Analysed.open(snakemake.input, spec, names)
    for name, output in zip(names, snakemake.output, strict=True):
        frame = None
        if opened.cache is not None:
            previous, refused = read_previous(snakemake.input.previous, name, opened.cache)
            bucket = read_bucket(opened.cache, name, "eval")
            frame = geometry_table(bucket, opened.bases, spec, previous=previous, refused=refused)
            frame = opened.told(frame, "geometry")
        write_stage(output, frame, "geometry", opened.sites)
