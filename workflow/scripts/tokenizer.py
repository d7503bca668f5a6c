"""A byte-level BPE tokenizer trained on the corpus."""

from pathlib import Path

from isotrace.corpus.documents import read_texts
from isotrace.corpus.tokenizer import train_tokenizer
from isotrace.job import job

with job(snakemake) as spec:
    texts = read_texts(Path(snakemake.input.documents))
    train_tokenizer(texts, Path(snakemake.output.tokenizer).parent, spec)
