"""Packed sequences of token ids, their counts, and the split into fit and eval."""

from pathlib import Path

from isotrace.corpus.documents import read_owners, read_texts
from isotrace.corpus.shape import with_shape
from isotrace.corpus.stores import write_tokens
from isotrace.corpus.tokenizer import load_tokenizer, mask_token_id
from isotrace.corpus.tokens import tokenize, tokens_by_corpus
from isotrace.job import job

with job(snakemake) as spec:
    tokenizer = load_tokenizer(Path(snakemake.input.tokenizer).parent, spec["remote_code"])
    shape = snakemake.input.shape  # a path, or nothing for a model that is trained here
    shaped = with_shape(spec, Path(shape) if shape else None)
    documents = Path(snakemake.input.documents)
    tokens = tokenize(read_texts(documents), tokenizer, shaped)
    text = tokens_by_corpus(tokens, read_owners(documents))
    attributes = {"mask_token_id": mask_token_id(tokenizer), "tokenizer_size": len(tokenizer), "text": text}
    write_tokens(Path(snakemake.output.manifest), tokens, spec, attributes)
