"""What the study will take: written beside the results, and shown."""

from pathlib import Path

from isotrace.job import job
from isotrace.planning.show import show
from isotrace.study import load

with job(snakemake):
    text = show(load(snakemake.config), Path(snakemake.input.calibration).parent, cores=snakemake.threads)
print(text)
