"""A series of checkpoints, trained here and saved as ordinary transformers folders."""

from pathlib import Path

from isotrace.checkpoints.train import train
from isotrace.corpus.stores import read_tokens
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    tokens = read_tokens(Path(snakemake.input.tokens))
    series = Path(snakemake.output.series)
    folder = Path(snakemake.input.tokenizer).parent
    done = train(spec, tokens.ids[tokens.split == 0], folder, series.parent, spec["threads"])
    write_json(series, done)
