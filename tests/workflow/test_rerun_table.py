"""The tables of config/README.md on what a change reruns, key by key, against dry runs after a real run."""

import shutil
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from running import ROOT, Study

from dumped import arrays, model, write
from isotrace.reruns.changes import changes
from isotrace.reruns.table import END, PAGE, read
from isotrace.study import validated

TABLE, BELOW = read((ROOT / PAGE).read_text(encoding="utf-8"))
NAMES = {
    "models.trained": "models.decoder",
    "models.masked": "models.encoder",
    "corpora.dump": "corpora.wiki",
    "corpora.text": "corpora.none",
    "models.runs": "models.none",
}
"""What the example's models and corpora are called in the study that is run."""
BASE: dict[str, Any] = {
    "bases": {"methods": ["pca", "svd"], "ranks": [2, 4]},
    "isotropy": {"ranks": [2, 4], "null_spaces": ["complement", "ambient"], "draws": 39, "draws_corrected": 19},
}
"""What each key needs to have another legal value."""
STEPS = (0, 10, 33, 100)
VIT: dict[str, Any] = {
    "kind": "init",
    "seeds": [0, 1],
    "architecture": {
        "model_type": "vit",
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "image_size": 32,
        "patch_size": 8,
    },
}
NOT_HERE: dict[str, set[str]] = {
    "seed": {"corpus", "tokenizer", "initialise"},
    "tokens.sequence_length": {"perceive", "frequency_vectors"},
    "buckets.kind": {"perceive"},
    "buckets.number": {"perceive"},
    "buckets.edges": {"perceive"},
    "sample.exclude_first": {"perceive"},
}
"""Rules that a key reaches through what this study has not: mixtures, an added step 0, models of characters."""
UNKNOWN_HERE = set() if find_spec("boto3") else {"storage.cache"}
"""Keys whose values are refused for want of an extra."""
FIRST_TIME: dict[str, set[str]] = {"models.NAME.corpus": {"corpus"}}
"""Rules that run because nothing here has read that corpus before."""


def raw_study(smoke: Study, folder: Path) -> dict[str, Any]:
    """The smoke study with its checkpoints as a stored series, and with dumped vectors; every key written out."""
    for step in (3, 10):
        shutil.copytree(smoke.at(f"weights/decoder/checkpoint-{step}"), folder / "stored" / f"checkpoint-{step}")
    for step in STEPS:
        write(folder / "dumps" / str(step), arrays(step))
    shutil.copytree(folder / "stored", folder / "moved")
    shutil.copytree(folder / "dumps", folder / "else")
    shutil.copytree(folder / "stored" / "checkpoint-3", folder / "shape")
    shutil.copytree(smoke.at("weights/decoder/tokenizer"), folder / "words")
    np.save(folder / "counts.npy", np.ones(40, np.int64))
    for name in ("scores.csv", "other.yaml"):
        (folder / name).write_text((ROOT / "config" / "claims.yaml").read_text())
    raw: dict[str, Any] = yaml.safe_load(smoke.config.read_text())
    for block, values in BASE.items():
        raw[block] |= values
    raw["corpora"]["dump"] = raw["corpora"]["wiki"] | {"max_documents": 10}
    for loaded in raw["models"].values():
        loaded["corpus"] = "wiki"
    for name in ("more.xml", "b.png"):
        shutil.copy(folder / "counts.npy", folder / name)
    raw["corpora"]["images"] = {"source": "images", "paths": ["python:sklearn/datasets/images/china.jpg"], "tiles": 6}
    stored = {"kind": "local", "path": "stored/checkpoint-{step}"}
    raw["models"] |= {
        "stored": {"objective": "clm", "corpus": "wiki", "total_steps": 40, "source": stored},
        "dumped": model("dumps/{step}"),
        "pictures": {"objective": "none", "modality": "image", "corpus": "images", "source": VIT},
    }
    figures = [name for name in validated(raw).figures.names if name != "early_late"]
    raw |= {"figures": {"names": figures}, "untrained": {"seeds": [0]}}
    return validated(raw).model_dump(mode="json")


@pytest.fixture(scope="module")
def whole(smoke: Study, tmp_path_factory: pytest.TempPathFactory) -> Study:
    """That study, finished, on what the smoke study has done."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    shutil.copytree(smoke.folder, folder)
    study = replace(smoke, folder=folder).written(raw_study(smoke, folder))
    study.done()
    locks = folder / "config" / "locks"
    locks.mkdir(parents=True)
    for lock in study.at("checkpoints").glob("*.lock.json"):
        shutil.copy(lock, locks)
    return study


def applies(edits: dict[str, Any], raw: dict[str, Any]) -> bool:
    """Whether the models and corpora that a change is of are in the study."""
    return all(path.split(".")[1] in raw[path.split(".")[0]] for path in edits if path.startswith(("models", "corp")))


def renamed(edits: dict[str, Any]) -> dict[str, Any]:
    """The edits where that study has what they change."""
    if "scores" in edits:
        return {"scores": {"decoder": "scores.csv"}}
    found = {}
    for path, value in edits.items():
        start = ".".join(path.split(".")[:2])
        found[NAMES.get(start, start) + path.removeprefix(start)] = value
    return found


@pytest.mark.slow
def test_every_key_reruns_what_the_table_says(whole: Study) -> None:
    raw = yaml.safe_load(whole.config.read_text())
    known = {(change.key, change.case): renamed(change.edits) for change in changes()}
    tried = {key: edits for key, edits in known.items() if applies(edits, raw) and key[0] not in UNKNOWN_HERE}
    assert len(tried) > 150
    plans = whole.plans({"|".join(key): edits for key, edits in tried.items()} | {"": {}})
    assert plans.pop("") == {}
    rules = set(whole.plans({"": {"pathvars": {"results": "nowhere"}}})[""])
    wrong = {}
    for name, planned in plans.items():
        key, _, case = name.partition("|")
        again, added = TABLE[key, case]
        expected = (again | added) & rules - NOT_HERE.get(key, set()) | FIRST_TIME.get(key, set())
        if isinstance(planned, str) or set(planned) - {"report"} != expected - {"report"}:
            wrong[name] = (planned, sorted(expected))
    assert wrong == {}


@pytest.mark.slow
def test_a_checkpoint_more_touches_no_other(whole: Study) -> None:
    new = whole.folder / "stored" / "checkpoint-30"
    shutil.copytree(whole.folder / "stored" / "checkpoint-3", new)
    try:
        planned = whole.plans({"": {}})[""]
    finally:
        shutil.rmtree(new)
    own = ("audit_checkpoint", "capture", "attention", "frequency", "energy", "controls", "isotropy", "geometry")
    assert {rule: planned.pop(rule) for rule in own} == dict.fromkeys(own, 1)
    assert set(planned) == {"lock", "moving", "subspaces", "table", "figure", "card", "dynamics", "claims", "report"}


def test_every_key_has_a_row_and_every_row_a_key() -> None:
    assert {(change.key, change.case) for change in changes()} == set(TABLE)


def test_a_page_reads_back_as_it_was_written() -> None:
    again, added = TABLE["energy.resamples", ""]
    assert again == {"energy", "controls", "table", "figure", "card", "dynamics", "claims"}
    assert added == set()
    assert TABLE["capture.batch_size", ""][0] > {"capture", "perceive", "energy", "bases", "attention"}
    assert "capture" not in TABLE["bases.ranks", "a new largest rank"][0]
    assert TABLE["figures.names", ""] == (set(), {"figure"})
    assert TABLE["models.NAME.source(init).seeds", ""][1] >= {"initialise", "capture", "energy"}
    assert END in (ROOT / PAGE).read_text()
