"""Documents, and the Parquet file in which a study keeps those of a corpus.

Columns id, title, text, corpus, language; our choice.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path


@dataclass(frozen=True)
class Document:
    """One document; ``text`` is plain, without markup; ``corpus`` is the one it was read from, in a mixture its part.

    language: the tag that the config gives that corpus, None where it gives none.
    """

    id: str
    title: str
    text: str
    corpus: str = ""
    language: str | None = None


@dataclass(frozen=True)
class Owner:
    """The corpus of a document and its language."""

    corpus: str
    language: str | None


def write_documents(path: Path, documents: Sequence[Document]) -> None:
    """Write documents as Parquet: atomically, the same bytes for the same documents."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [field.name for field in fields(Document)]
    columns = {name: pa.array([getattr(document, name) for document in documents], pa.string()) for name in names}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.tmp-{os.getpid()}")
    pq.write_table(pa.table(columns), temporary, compression="zstd")
    temporary.replace(path)


def read_documents(path: str | Path) -> Iterator[Document]:
    """The documents that ``write_documents`` wrote, in its order."""
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches():
        yield from (Document(**row) for row in batch.to_pylist())


def read_texts(path: str | Path) -> list[str]:
    """The texts alone, in order."""
    import pyarrow.parquet as pq

    texts: list[str] = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    return texts


def read_owners(path: str | Path) -> list[Owner]:
    """The corpus and language of each document, in order."""
    import pyarrow.parquet as pq

    return [Owner(**row) for row in pq.read_table(path, columns=["corpus", "language"]).to_pylist()]
