"""Gradient energy in tangent bases against null subspaces: a table a bucket."""

from pathlib import Path

from isotrace.analysed import Analysed
from isotrace.geometry.energy import energy_table
from isotrace.job import job
from isotrace.readers import read_moments
from isotrace.results import write_stage
from isotrace.weight_moments import read_weights

with job(snakemake) as spec:
    names = [Path(output).stem for output in snakemake.output]
    opened = Analysed.open(snakemake.input, spec, names)
    bases = opened.with_maps(Path(snakemake.input.moments), spec)
    for name, output in zip(names, snakemake.output, strict=True):
        frame = None
        if opened.cache is not None:
            moments = read_moments(opened.moments, name, "eval", "activation")
            variance = {site: m.covariance for site, m in moments.items() if m.n > 1}
            weights = read_weights(opened.moments, name)
            frame = energy_table(opened.tokens(name), bases, spec, variance=variance, weights=weights)
            frame = opened.told(frame, "energy")
        write_stage(output, frame, "energy", opened.sites)
