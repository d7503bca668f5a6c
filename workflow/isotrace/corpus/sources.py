"""Documents from a MediaWiki dump or from plain files, and the Parquet file in which a study keeps them.

A dump is read by gensim's parser; which pages count (articles, no redirects, a least length) is our choice.
"""

import bz2
import gzip
import hashlib
import importlib.util
import itertools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from typing import IO, Any

from isotrace.corpus.wikitext import plain_text
from isotrace.errors import ConfigError, DataError

_PACKAGED = "python:"


@dataclass(frozen=True)
class Document:
    """One document; ``text`` is plain, without markup."""

    id: str
    title: str
    text: str


@dataclass(frozen=True)
class SourceFile:
    """A file by the name that the config and the manifest use, and where it is on this machine."""

    name: str
    path: Path


Reader = Callable[[SourceFile, dict[str, Any]], Iterator[Document]]
SOURCES: dict[str, Reader] = {}


def source(name: str) -> Callable[[Reader], Reader]:
    """Register a reader: one file and the spec in, documents out."""

    def register(reader: Reader) -> Reader:
        SOURCES[name] = reader
        return reader

    return register


def documents(spec: dict[str, Any]) -> Iterator[Document]:
    """The documents of a corpus, in the order of its files.

    spec: ``source`` (mediawiki | files), ``paths`` (files, globs or ``python:PACKAGE/file``), ``min_characters``,
    ``max_documents`` (None: all), ``text_key`` (jsonl). DataError names the file that is missing or unreadable.
    """
    reader = SOURCES.get(spec["source"])
    if reader is None:
        raise ConfigError(f"source {spec['source']!r}: allowed are {', '.join(sorted(SOURCES))}")
    files = source_files(spec["paths"])
    read = itertools.chain.from_iterable(reader(file, spec) for file in files)
    long_enough = (document for document in read if len(document.text) >= spec["min_characters"])
    empty = True
    for document in itertools.islice(long_enough, spec["max_documents"]):
        empty = False
        yield document
    if empty:
        names = ", ".join(file.name for file in files)
        raise DataError(f"{names}: no document of {spec['min_characters']} characters; lower min_characters")


def source_files(paths: list[str]) -> list[SourceFile]:
    """Every file that the paths name, globs expanded and sorted; DataError for one that is missing or empty."""
    files = [file for path in paths for file in _expand(path)]
    for file in files:
        if not file.path.is_file():
            raise DataError(f"{file.name}: no such file; check the corpus paths")
        if file.path.stat().st_size == 0:
            raise DataError(f"{file.name}: the file is empty; download it again or take it out of the paths")
    if not files:
        raise DataError("the corpus has no paths; name at least one file")
    return files


def _expand(path: str) -> list[SourceFile]:
    if path.startswith(_PACKAGED):
        return [SourceFile(path, _packaged(path))]
    if not has_magic(path):
        return [SourceFile(path, Path(path).expanduser())]
    found = sorted(name for name in glob(os.path.expanduser(path), recursive=True) if os.path.isfile(name))
    if not found:
        raise DataError(f"{path}: the pattern matches no file; check the corpus paths")
    return [SourceFile(name, Path(name)) for name in found]


def _packaged(path: str) -> Path:
    package, _, relative = path.removeprefix(_PACKAGED).partition("/")
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        raise DataError(f"{path}: the package {package!r} is not installed; pip install it")
    return Path(found.submodule_search_locations[0]) / relative


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".bz2":
        return bz2.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


@source("mediawiki")
def _mediawiki(file: SourceFile, spec: dict[str, Any]) -> Iterator[Document]:
    """Articles (namespace 0) of an XML dump, plain, .bz2 or .gz; redirects are left out."""
    from xml.etree.ElementTree import ParseError

    try:
        from gensim.corpora.wikicorpus import extract_pages
    except ImportError as error:
        raise DataError(f"{file.name}: a dump needs gensim; pip install 'isotrace[demo]'") from error
    try:
        with _open(file.path) as handle:
            for title, markup, page in extract_pages(handle, filter_namespaces=("0",), filter_articles=_is_article):
                if markup:
                    yield Document(id=str(page), title=str(title), text=plain_text(markup))
    except (ParseError, ValueError, AttributeError, OSError, EOFError, RuntimeError) as error:
        raise DataError(f"{file.name}: not a whole MediaWiki dump ({error}); download it again") from error


def _is_article(element: Any, *, namespace: str, text: str | None, **_: Any) -> bool:
    redirect = element.find(f"./{{{namespace}}}redirect") is not None
    return not redirect and not (text or "").lstrip().lower().startswith("#redirect")


@source("files")
def _files(file: SourceFile, spec: dict[str, Any]) -> Iterator[Document]:
    """One document a ``.txt`` file, one a line of a ``.jsonl`` file; either may be compressed."""
    name = file.path.name.removesuffix(".gz").removesuffix(".bz2")
    try:
        with _open(file.path) as handle:
            if name.endswith(".txt"):
                yield Document(id=file.name, title=name, text=handle.read().decode("utf-8"))
            elif name.endswith(".jsonl"):
                yield from _json_lines(file, handle, spec["text_key"])
            else:
                raise DataError(f"{file.name}: neither .txt nor .jsonl (also .gz, .bz2); convert it or leave it out")
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise DataError(f"{file.name}: cannot be read as UTF-8 text ({error}); repair it or leave it out") from error


def _json_lines(file: SourceFile, handle: IO[bytes], key: str) -> Iterator[Document]:
    for number, line in enumerate(handle, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise DataError(f"{file.name}:{number}: not a JSON object ({error.msg})") from error
        if not isinstance(record, dict) or not isinstance(record.get(key), str):
            raise DataError(f"{file.name}:{number}: no text under the key {key!r}; set text_key")
        identifier = f"{file.name}:{number}"
        yield Document(id=str(record.get("id", identifier)), title=str(record.get("title", "")), text=record[key])


def write_corpus(spec: dict[str, Any], path: str | Path) -> dict[str, Any]:
    """Write the documents to Parquet (id, title, text) and return what identifies them.

    Returns ``{source, files: {name: sha256}, n_documents, n_characters, documents_sha256}``.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    kept = list(documents(spec))
    digest = hashlib.sha256()
    for document in kept:
        digest.update(json.dumps([document.id, document.title, document.text]).encode())
    columns = {name: [getattr(document, name) for document in kept] for name in ("id", "title", "text")}
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.tmp-{os.getpid()}")
    pq.write_table(pa.table(columns), temporary, compression="zstd")
    temporary.replace(target)
    return {
        "source": spec["source"],
        "files": {file.name: _sha256(file.path) for file in source_files(spec["paths"])},
        "n_documents": len(kept),
        "n_characters": sum(len(document.text) for document in kept),
        "documents_sha256": digest.hexdigest(),
    }


def read_texts(path: str | Path) -> list[str]:
    """The texts that ``write_corpus`` wrote, in its order."""
    import pyarrow.parquet as pq

    texts: list[str] = pq.read_table(path, columns=["text"]).column("text").to_pylist()
    return texts


def _sha256(path: Path) -> str:
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
