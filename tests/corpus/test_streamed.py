"""Streamed datasets, on folders in the layout of one: columns, limits, seeds, and each failure in one line."""

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hub_server import Hub, serving
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


STREAM = """
import json, sys
from isotrace.corpus.sources import documents
from isotrace.errors import DataError
try:
    print(json.dumps([document.text for document in documents(json.loads(sys.argv[1]))]))
except DataError as error:
    sys.exit(str(error))
"""


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    """``org/text`` in two revisions: five documents, then five others under the same names."""
    revisions = {}
    for name in ("first", "main"):
        revisions[name] = tmp_path / name
        (revisions[name] / "data").mkdir(parents=True)
        (revisions[name] / "README.md").write_text("---\nlicense: cc0-1.0\n---\n")
        rows = [json.dumps({"text": f"document {i} of {name}"}) for i in range(5)]
        (revisions[name] / "data" / "train.jsonl").write_text("\n".join(rows))
    with serving(Hub({"org/text": revisions})) as found:
        yield found


def stream(hub: Hub, home: Path, **changes: Any) -> subprocess.CompletedProcess[str]:
    """In a process of its own: the library asks for the hub's address once, when it is imported."""
    wanted = json.dumps(spec("org/text", revision=hub.commit("org/text", "first")) | changes)
    environment = os.environ | {"HF_ENDPOINT": hub.url, "HOME": str(home), "HF_TOKEN_PATH": str(home / "none")}
    return subprocess.run([sys.executable, "-c", STREAM, wanted], env=environment, capture_output=True, text=True)


@needs_datasets
def test_a_repository_is_streamed_at_its_commit_whatever_came_later(hub: Hub, tmp_path: Path) -> None:
    result = stream(hub, tmp_path / "home", max_documents=3)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout) == [f"document {i} of first" for i in range(3)]
    commit = hub.commit("org/text", "first")
    assert hub.asked("GET", "train.jsonl") > 0
    assert {path.split("/")[4] for _, path, *_ in hub.requests if "/resolve/" in path} == {commit}
    assert not (tmp_path / "home" / ".cache" / "huggingface" / "datasets").exists()


@needs_datasets
@pytest.mark.parametrize("changes", [{"revision": "0" * 40}, {"name": "org/none"}], ids=["no such commit", "no repo"])
def test_what_the_hub_does_not_have_is_one_line(hub: Hub, tmp_path: Path, changes: dict[str, Any]) -> None:
    result = stream(hub, tmp_path / "home", **changes)
    assert result.returncode == 1
    said = result.stderr.splitlines()[-1]
    assert said.startswith(f"corpora.web: {changes.get('name', 'org/text')} cannot be read (")


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
