"""Streamed datasets, on folders in the layout of one: columns, limits, seeds, and each failure in one line."""

import hashlib
import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from isotrace.corpus.sources import documents, write_corpus
from isotrace.errors import DataError

needs_datasets = pytest.mark.skipif(
    importlib.util.find_spec("datasets") is None, reason="the package datasets is not installed (extra hub)"
)


def spec(name: str, **changes: Any) -> dict[str, Any]:
    base = {"corpus": "web", "source": "datasets", "name": name, "revision": None, "config": None, "split": "train"}
    kept = {"min_characters": 5, "max_documents": None, "language": "en"}
    return base | {"field": "text", "shuffle_seed": None} | kept | changes


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """Forty documents, the first too short, as the train split of a folder."""
    rows = [{"text": f"document number {i}" if i else "abc", "other": i} for i in range(40)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path / "data")


@needs_datasets
def test_documents_come_in_order_up_to_the_limit_and_carry_their_corpus(folder: str) -> None:
    found = list(documents(spec(folder, max_documents=3)))
    assert [d.text for d in found] == ["document number 1", "document number 2", "document number 3"]
    assert {(d.corpus, d.language) for d in found} == {("web", "en")}


@needs_datasets
def test_a_shuffle_is_a_permutation_that_the_seed_decides(folder: str) -> None:
    plain, once, again, other = (
        [d.text for d in documents(spec(folder, shuffle_seed=seed))] for seed in (None, 3, 3, 4)
    )
    assert sorted(once) == sorted(plain)
    assert once == again
    assert len({tuple(plain), tuple(once), tuple(other)}) == 3


@needs_datasets
def test_the_manifest_says_what_was_streamed(folder: str, tmp_path: Path) -> None:
    manifest = write_corpus(spec(folder, shuffle_seed=3), tmp_path / "out.parquet")
    digest = hashlib.sha256((Path(folder) / "train.jsonl").read_bytes()).hexdigest()
    assert manifest["files"] == {"train.jsonl": digest}
    assert (manifest["dataset"]["name"], manifest["dataset"]["shuffle_seed"]) == (folder, 3)
    assert manifest["n_documents"] == 39


@needs_datasets
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"field": "body"}, r"corpora.web.field: row 1 has no text in 'body', only \['other', 'text'\]"),
        ({"field": "other"}, "corpora.web.field: row 1 has no text in 'other'"),
        ({"split": "test"}, "corpora.web: .* cannot be read .*test"),
        ({"config": "de"}, "corpora.web: .* cannot be read .*'de'"),
        ({"min_characters": 100}, "no document of 100 characters"),
    ],
    ids=["no column", "no text", "no split", "no config", "too short"],
)
def test_what_is_not_there_is_said_in_one_line(folder: str, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(DataError, match=says) as raised:
        list(documents(spec(folder, **changes)))
    assert "\n" not in str(raised.value)


def test_a_repository_without_a_commit_says_how_to_find_it() -> None:
    with pytest.raises(DataError, match=r"corpora.web.revision: null; put the commit of org/text there.*dataset_info"):
        list(documents(spec("org/text")))


def test_a_folder_never_stands_in_for_a_repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "org" / "text").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"corpora.web.name: org/text is a folder here too"):
        list(documents(spec("org/text", revision="0" * 40)))


@pytest.mark.skipif(importlib.util.find_spec("datasets") is not None, reason="the package datasets is installed")
def test_a_missing_package_is_one_line() -> None:
    with pytest.raises(DataError, match=r"corpora.web.source: the package datasets is missing; pip install"):
        list(documents(spec("org/text", revision="0" * 40)))
