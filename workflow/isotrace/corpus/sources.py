"""Documents from MediaWiki dumps, plain files, hub datasets and mixtures of these, written down once.

A dump is read by gensim's parser; which pages count (articles, no redirects, a least length) is our choice.
"""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from isotrace.corpus.documents import Document, read_documents, write_documents
from isotrace.corpus.files import SourceFile, opened, source_files
from isotrace.corpus.mixture import mix
from isotrace.corpus.streamed import is_folder, streamed
from isotrace.corpus.wikitext import plain_text
from isotrace.errors import ConfigError, DataError
from isotrace.filehash import file_sha256

Reader = Callable[[SourceFile, dict[str, Any]], Iterator[Document]]
SOURCES: dict[str, Reader] = {}


def source(name: str) -> Callable[[Reader], Reader]:
    """Register a reader: one file and the spec in, documents out."""

    def register(reader: Reader) -> Reader:
        SOURCES[name] = reader
        return reader

    return register


def documents(spec: dict[str, Any], parts: Mapping[str, Path] | None = None) -> Iterator[Document]:
    """The documents of a corpus, in order.

    spec: ``corpus`` (its name), ``source`` (mediawiki | files | datasets | mixture), ``max_documents`` (None: all),
    and the keys of that source (``settings.corpora``); ``parts`` are the Parquet files of a mixture's corpora.
    DataError names the file that is missing or unreadable.
    """
    if spec["source"] == "mixture":
        texts = {name: list(read_documents(path)) for name, path in (parts or {}).items()}
        yield from itertools.islice(mix(texts, spec["parts"], spec["seed"]), spec["max_documents"])
        return
    long_enough = (document for document in _read(spec) if len(document.text) >= spec["min_characters"])
    empty = True
    for document in itertools.islice(long_enough, spec["max_documents"]):
        empty = False
        yield replace(document, corpus=spec["corpus"], language=spec["language"])
    if empty:
        names = ", ".join(file.name for file in source_files(spec["paths"])) if "paths" in spec else spec["name"]
        raise DataError(f"{names}: no document of {spec['min_characters']} characters; lower min_characters")


def _read(spec: dict[str, Any]) -> Iterator[Document]:
    if spec["source"] == "datasets":
        return streamed(spec)
    reader = SOURCES.get(spec["source"])
    if reader is None:
        raise ConfigError(f"source {spec['source']!r}: allowed are {', '.join(sorted(SOURCES))}, datasets, mixture")
    return itertools.chain.from_iterable(reader(file, spec) for file in source_files(spec["paths"]))


@source("mediawiki")
def _mediawiki(file: SourceFile, spec: dict[str, Any]) -> Iterator[Document]:
    """Articles (namespace 0) of an XML dump, plain, .bz2 or .gz; redirects are left out."""
    from xml.etree.ElementTree import ParseError

    try:
        from gensim.corpora.wikicorpus import extract_pages
    except ImportError as error:
        raise DataError(f"{file.name}: a dump needs gensim; pip install 'isotrace[demo]'") from error
    try:
        with opened(file.path) as handle:
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
        with opened(file.path) as handle:
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


def write_corpus(spec: dict[str, Any], path: Path, parts: Mapping[str, Path] | None = None) -> dict[str, Any]:
    """Write the documents to Parquet (id, title, text, corpus, language) and return what identifies them.

    Returns ``{source, files: {name: sha256}, dataset: {name, revision, ...} or {}, parts: {corpus: {language,
    n_documents, n_characters}}, n_documents, n_characters, documents_sha256}``; ``parts`` of a corpus that is no
    mixture is itself.
    """
    kept = list(documents(spec, parts))
    digest = hashlib.sha256()
    found: dict[str, dict[str, Any]] = {}
    for document in kept:
        digest.update(json.dumps([document.id, document.title, document.text]).encode())
        part = found.setdefault(document.corpus, {"language": document.language, "n_documents": 0, "n_characters": 0})
        part["n_documents"] += 1
        part["n_characters"] += len(document.text)
    write_documents(path, kept)
    dataset = ("name", "revision", "config", "split", "field", "shuffle_seed")
    return {
        "source": spec["source"],
        "files": {file.name: file_sha256(file.path) for file in _files_read(spec)},
        "dataset": {key: spec[key] for key in dataset} if spec["source"] == "datasets" else {},
        "parts": dict(sorted(found.items())),
        "n_documents": len(kept),
        "n_characters": sum(part["n_characters"] for part in found.values()),
        "documents_sha256": digest.hexdigest(),
    }


def _files_read(spec: dict[str, Any]) -> list[SourceFile]:
    """What was read on this machine; nothing for a repository of the hub, whose commit says it, and for a mixture."""
    if "paths" in spec:
        return source_files(spec["paths"])
    if spec["source"] != "datasets" or not is_folder(spec["name"]):
        return []
    folder = Path(spec["name"]).expanduser()
    return [SourceFile(str(path.relative_to(folder)), path) for path in sorted(folder.rglob("*")) if path.is_file()]
