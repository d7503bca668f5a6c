"""One untrained checkpoint: random weights of a seed, in an ordinary folder."""

from pathlib import Path

from isotrace.checkpoints.initialise import initialise
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    manifest = Path(snakemake.output.manifest)
    tokenizer = snakemake.input.tokenizer  # a path, or nothing where a model reads no text and makes its processor
    shape = snakemake.input.shape  # a path, or nothing where the config describes the architecture
    reads, like = (Path(tokenizer).parent if tokenizer else None), (Path(shape) if shape else None)
    write_json(manifest, initialise(spec, reads, like, manifest.with_suffix("")))
