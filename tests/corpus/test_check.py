"""What is wrong with a corpus is said before any job, with the key's path."""

from pathlib import Path

import pytest

from configs import smoke
from isotrace.errors import ConfigError
from isotrace.study import load

COMMIT = "0123456789abcdef0123456789abcdef01234567"
HUB = {"source": "datasets", "name": "org/text", "revision": COMMIT}
MISTAKES = [
    ({"source": "files", "paths": ["none.txt"]}, "corpora.text.paths: none.txt: no such file"),
    ({"source": "files", "paths": ["none/*.txt"]}, "corpora.text.paths: none/.*: the pattern matches no file"),
    ({"source": "mediawiki", "paths": ["python:no_such/a.bz2"]}, "corpora.text.paths: .*'no_such' is not installed"),
    ({"source": "files", "paths": ["a.txt"], "language": "English"}, "corpora.text.language: .*'English'"),
    (HUB | {"revision": "main"}, "corpora.text.revision: .*'main'"),
    ({"source": "datasets", "name": "org/text"}, "corpora.text.revision: .*required"),
    (HUB | {"name": "./none", "revision": None}, "corpora.text.name: no folder ./none"),
    (HUB | {"name": "./none"}, "corpora.text: revision: a folder has none, got 0123"),
    ({"source": "mixture", "parts": {}}, "corpora.text.parts: .*at least 1"),
    ({"source": "mixture", "parts": {"wiki": 0.0}}, "corpora.text.parts.wiki: .*greater than 0"),
    ({"source": "mixture", "parts": {"books": 1.0}}, r"corpora.text.parts: 'books' is not among .* \['wiki'\]"),
    ({"source": "mixture", "parts": {"text": 1.0}}, r"corpora.text.parts: 'text' is not among .* \['wiki'\]"),
]


def study_of(corpus: dict[str, object]) -> dict[str, object]:
    chosen = {f"models.{model}.corpus": "wiki" for model in ("decoder", "encoder")}
    return smoke({"corpora.text": corpus, **chosen})


@pytest.mark.parametrize(("corpus", "says"), MISTAKES)
def test_a_mistake_names_its_key(corpus: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=f"^{says}") as raised:
        load(study_of(corpus))
    assert "\n" not in str(raised.value)


def test_an_empty_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(ConfigError, match=r"corpora.text.paths: .*a.txt: the file is empty"):
        load(study_of({"source": "files", "paths": [str(tmp_path / "*")]}))


def test_a_commit_that_is_not_known_yet_does_not_keep_a_study_from_being_planned() -> None:
    study = load(study_of(HUB | {"revision": None}))
    assert study.parts_of("text") == []


def test_a_mixture_knows_its_parts() -> None:
    study = load(study_of({"source": "mixture", "parts": {"wiki": 2}}))
    assert (study.parts_of("text"), study.parts_of("wiki")) == (["wiki"], [])
