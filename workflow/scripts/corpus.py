"""Documents of a corpus, read once, with what they were read from."""

from pathlib import Path

from isotrace.corpus.sources import write_corpus
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    manifest = write_corpus(spec, Path(snakemake.output.documents))
    write_json(Path(snakemake.output.manifest), manifest)
