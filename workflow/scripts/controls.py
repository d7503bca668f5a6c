"""Energies under other explanations, the optimism of bases, leaks, and energy over rank: two tables a bucket."""

from pathlib import Path

from isotrace.analysed import Analysed
from isotrace.checks import bucket_checks
from isotrace.job import job
from isotrace.results import write_stage

with job(snakemake) as spec:
    opened = Analysed.open(snakemake.input, spec, spec["buckets"])
    bases = opened.with_maps(Path(snakemake.input.moments), spec)
    where = f"{spec['model']} {Path(snakemake.input.cache).stem}"
    half = len(snakemake.output) // 2
    for controls, curve in zip(snakemake.output[:half], snakemake.output[half:], strict=True):
        frames = bucket_checks(opened, Path(controls).stem, bases, spec, where=where)
        write_stage(controls, frames[0], "controls", opened.sites)
        write_stage(curve, frames[1], "rank_curve", opened.sites)
