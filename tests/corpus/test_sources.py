"""Documents from dumps and files: what is kept, that bytes are stable, and what a damaged file says."""

import bz2
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from isotrace.corpus.documents import Owner, read_owners, read_texts
from isotrace.corpus.sources import documents, write_corpus
from isotrace.errors import ConfigError, DataError

DUMP = "python:gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
PAGE = "<page><title>{title}</title><ns>{ns}</ns><id>{id}</id>{extra}<revision><text>{text}</text></revision></page>"
SITE = '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.10/"><siteinfo/>{pages}</mediawiki>'


def spec(*paths: str | Path, **changes: Any) -> dict[str, Any]:
    base = {"corpus": "text", "source": "files", "min_characters": 5, "max_documents": None, "text_key": "text"}
    return {**base, "language": None, "paths": [str(path) for path in paths], **changes}


def dump() -> bytes:
    pages = [
        PAGE.format(title="A", ns=0, id=1, extra="", text="'''Rivers''' flow to the [[sea|great sea]]."),
        PAGE.format(title="B", ns=0, id=2, extra='<redirect title="A"/>', text="#REDIRECT [[A]] and some words"),
        PAGE.format(title="Talk:A", ns=1, id=3, extra="", text="People talk about rivers here."),
        PAGE.format(title="C", ns=0, id=4, extra="", text="tiny"),
    ]
    return SITE.format(pages="".join(pages)).encode()


@pytest.mark.parametrize(("suffix", "pack"), [(".xml", bytes), (".xml.bz2", bz2.compress), (".xml.gz", gzip.compress)])
def test_a_dump_gives_its_articles_only(tmp_path: Path, suffix: str, pack: Any) -> None:
    path = tmp_path / f"wiki{suffix}"
    path.write_bytes(pack(dump()))
    found = list(documents(spec(path, source="mediawiki")))
    assert [(d.id, d.title, d.text) for d in found] == [("1", "A", "Rivers flow to the great sea.")]


def test_the_packaged_dump_is_found_by_its_package() -> None:
    found = list(documents(spec(DUMP, source="mediawiki", max_documents=2, min_characters=200)))
    assert [d.title for d in found] == ["Anarchism", "Autism"]
    assert all("[[" not in d.text and "{{" not in d.text and "'''" not in d.text for d in found)


def test_files_are_read_in_sorted_order_plain_or_compressed(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("second document")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress("first döcument".encode()))
    lines = [{"body": "third document", "id": 7}, {"body": "no"}, {"body": "fourth document"}]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(line) for line in lines) + "\n\n")
    found = list(documents(spec(tmp_path / "*", text_key="body")))
    assert [d.text for d in found] == ["first döcument", "second document", "third document", "fourth document"]
    assert found[2].id == "7"


def test_documents_and_manifest_carry_corpus_and_language(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("un document")
    given = spec(tmp_path / "a.txt", corpus="wiki-fr", language="fr")
    manifest = write_corpus(given, tmp_path / "out.parquet")
    assert manifest["parts"] == {"wiki-fr": {"language": "fr", "n_documents": 1, "n_characters": 11}}
    assert read_owners(tmp_path / "out.parquet") == [Owner("wiki-fr", "fr")]


def test_a_mixture_of_written_corpora_keeps_owners_and_depends_on_the_seed(tmp_path: Path) -> None:
    parts = {}
    for name in ("en", "fr"):
        (tmp_path / f"{name}.jsonl").write_text("".join(f'{{"text": "{name} number {i:02}"}}\n' for i in range(30)))
        parts[name] = tmp_path / name / "documents.parquet"
        write_corpus(spec(tmp_path / f"{name}.jsonl", corpus=name, language=name), parts[name])
    mixture = {"corpus": "mix", "source": "mixture", "parts": {"en": 2.0, "fr": 1.0}, "max_documents": 30, "seed": 0}
    manifest = write_corpus(mixture, tmp_path / "mix.parquet", parts)
    each = {"n_characters": 12 * 20, "n_documents": 20}
    assert manifest["parts"]["en"] == each | {"language": "en"}
    assert manifest["parts"]["fr"]["n_documents"] == 10
    assert {owner.language for owner in read_owners(tmp_path / "mix.parquet")} == {"en", "fr"}
    assert manifest == write_corpus(mixture, tmp_path / "again.parquet", parts)
    assert (tmp_path / "mix.parquet").read_bytes() == (tmp_path / "again.parquet").read_bytes()
    other = write_corpus(mixture | {"seed": 1}, tmp_path / "other.parquet", parts)
    assert other["documents_sha256"] != manifest["documents_sha256"]


def test_the_written_corpus_is_read_back_and_its_bytes_are_stable(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one document")
    (tmp_path / "b.txt").write_text("another one")
    first = write_corpus(spec(tmp_path / "*.txt"), tmp_path / "one" / "corpus.parquet")
    second = write_corpus(spec(tmp_path / "*.txt"), tmp_path / "two" / "corpus.parquet")
    assert first == second
    assert (first["n_documents"], first["n_characters"]) == (2, 23)
    assert set(first["files"]) == {str(tmp_path / "a.txt"), str(tmp_path / "b.txt")}
    assert read_texts(tmp_path / "one" / "corpus.parquet") == ["one document", "another one"]
    written = [(tmp_path / name / "corpus.parquet").read_bytes() for name in ("one", "two")]
    assert written[0] == written[1]


@pytest.mark.parametrize(
    ("name", "content", "source", "says"),
    [
        ("cut.xml", dump()[:-40], "mediawiki", "not a whole MediaWiki dump"),
        ("cut.xml.bz2", bz2.compress(dump())[:-20], "mediawiki", "not a whole MediaWiki dump"),
        ("page.xml", b"<html><body>hello there</body></html>", "mediawiki", "not a whole MediaWiki dump"),
        ("empty.xml", b"", "mediawiki", "is empty"),
        ("latin.txt", b"caf\xe9 au lait", "files", "UTF-8"),
        ("broken.jsonl", b'{"text": "fine and long"}\n{"text": ', "files", ":2: not a JSON object"),
        ("other.jsonl", b'{"body": "a text"}\n', "files", "set text_key"),
        ("table.csv", b"a,b,c,d,e", "files", "neither .txt nor .jsonl"),
        ("short.txt", b"abc", "files", "lower min_characters"),
        ("cut.txt.gz", gzip.compress(b"a text of some length", mtime=0)[:-9], "files", "cannot be read"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, source: str, says: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=says) as raised:
        list(documents(spec(tmp_path / name, source=source)))
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("nowhere.txt", "no such file"),
        ("nothing/*.txt", "matches no file"),
        ("python:no_such_package/a.txt", "not installed"),
        ("python:gensim/test/no_such_dump.bz2", "no such file"),
    ],
)
def test_a_missing_file_is_named(path: str, says: str) -> None:
    with pytest.raises(DataError, match=says) as raised:
        list(documents(spec(path)))
    assert path in str(raised.value)


def test_an_unknown_source_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="files, mediawiki, datasets, mixture"):
        list(documents(spec("a.txt", source="ftp")))
