"""Documents of a corpus, read once, with what they were read from."""

from pathlib import Path

from isotrace.corpus.sources import write_corpus
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake, online=snakemake.params.spec["source"] == "datasets") as spec:
    parts = {path.parent.name: path for path in map(Path, snakemake.input.parts)}
    manifest = write_corpus(spec, Path(snakemake.output.documents), parts)
    write_json(Path(snakemake.output.manifest), manifest)
