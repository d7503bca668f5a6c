"""Gradient energy in tangent bases against null subspaces: a table a bucket."""

from pathlib import Path

from isotrace.analysed import Analysed
from isotrace.geometry.energy import energy_table
from isotrace.job import job
from isotrace.readers import read_bucket, read_moments
from isotrace.results import write_stage

with job(snakemake) as spec:
    names = [Path(output).stem for output in snakemake.output]
    opened = Analysed.open(snakemake.input, spec, names)
    for name, output in zip(names, snakemake.output, strict=True):
        frame = None
        if opened.cache is not None:
            moments = read_moments(opened.moments, name, "eval", "activation")
            variance = {site: m.covariance for site, m in moments.items() if m.n > 1}
            frame = energy_table(read_bucket(opened.cache, name, "eval"), opened.bases, spec, variance=variance)
        write_stage(output, frame, "energy", opened.sites)
