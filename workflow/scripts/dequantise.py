"""A GGUF file as an ordinary checkpoint folder."""

from pathlib import Path

from isotrace.checkpoints.dequantise import dequantise
from isotrace.job import job
from isotrace.store import write_json

with job(snakemake) as spec:
    file, manifest = Path(snakemake.input.file), Path(snakemake.output.manifest)
    beside = snakemake.input.tokenizer  # a path, or nothing where the file's own is read
    tokenizer = Path(beside).parent if beside else None
    write_json(manifest, dequantise(file, tokenizer, spec["objective"], manifest.with_suffix("")))
