"""A series of checkpoints, trained here and saved as ordinary transformers folders."""

from pathlib import Path

from isotrace.checkpoints.train import train
from isotrace.corpus.stores import read_tokens
from isotrace.job import job, progress
from isotrace.store import write_json

with job(snakemake) as spec:
    tokens = read_tokens(Path(snakemake.input.tokens))
    tokenizer, series = Path(snakemake.input.tokenizer).parent, Path(snakemake.output.series)
    ids = tokens.ids[tokens.sequences(0)]
    folders = train(spec, ids, tokenizer, series.parent, threads=spec["threads"], progress=progress("loss"))
    write_json(series, {"checkpoints": [folder.name for folder in folders]})
