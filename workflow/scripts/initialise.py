"""One untrained checkpoint: random weights of a seed, in an ordinary folder."""

from pathlib import Path

from isotrace.checkpoints.initialise import initialise
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    tokenizer, manifest = Path(snakemake.input.tokenizer).parent, Path(snakemake.output.manifest)
    shape = snakemake.input.shape  # a path, or nothing where the config describes the architecture
    write_json(manifest, initialise(spec, tokenizer, Path(shape) if shape else None, manifest.with_suffix("")))
