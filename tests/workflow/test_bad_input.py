"""Mistakes of the user's end in one line and exit code 1 before any capture; a broken checkpoint ends in its reason."""

import gzip
import json
import shutil
from collections.abc import Callable
from subprocess import CompletedProcess

import pandas as pd
import pytest
import yaml
from running import Study

Refused = Callable[[CompletedProcess[str]], str]


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ({"energy.draw": 5}, "energy.draw: unknown key"),
        ({"tokens.sequence_length": "long"}, "tokens.sequence_length: Input should be a valid integer"),
        ({"bases.early_fraction": 0.25}, "bases.early_fraction: 0.25 leaves 1 early checkpoint(s) of decoder"),
        ({"bases.ranks": [4, 20]}, "bases.ranks: 20 is above half the width 32"),
        ({"tokens.sequence_length": 128}, "tokens.sequence_length: 128 is above the context 64"),
        ({"models.decoder.corpus": "books"}, "models.decoder.corpus: 'books' is not among corpora ['wiki']"),
        (
            {"models.decoder.source": {"kind": "local", "path": "none/checkpoint-{step}"}},
            "models.decoder.source.path: no folder matches 'none/checkpoint-{step}'",
        ),
    ],
    ids=lambda value: "" if isinstance(value, str) else next(iter(value)),
)
def test_a_mistake_in_the_config_is_told_while_parsing(fresh: Study, refused: Refused, edits, said):
    result = fresh.changed(edits).snakemake()
    assert refused(result).startswith(f"isotrace: error: {said}")
    assert "Job stats" not in result.stdout


def corpus_of(study: Study, paths: list[str], source: str = "files") -> Study:
    return study.changed({"corpora.wiki": {"source": source, "paths": paths}})


def test_a_corpus_that_cannot_be_read_is_named(fresh: Study, refused: Refused):
    (fresh.folder / "dump.xml.bz2").write_bytes(b"BZh9 this is no dump")
    line = refused(corpus_of(fresh, ["dump.xml.bz2"], "mediawiki").snakemake())
    assert "dump.xml.bz2" in line


@pytest.mark.parametrize("content", [b"", b"too short"], ids=["empty", "only short documents"])
def test_an_empty_corpus_is_named(fresh: Study, refused: Refused, content: bytes):
    with gzip.open(fresh.folder / "text.txt.gz", "wb") as stream:
        stream.write(content)
    line = refused(corpus_of(fresh, ["*.txt.gz"]).snakemake())
    assert "text.txt.gz" in line


def test_a_bucket_without_a_token_is_named(own: Study, refused: Refused):
    line = refused(own.changed({"buckets": {"kind": "count", "edges": [1e9]}}).snakemake(cores=1))
    assert "bucket b0" in line


@pytest.fixture
def local(fresh: Study, smoke: Study) -> Study:
    """The decoder's trained checkpoints as a user's own series: nothing else is there yet."""
    runs = fresh.folder / "runs"
    shutil.copytree(smoke.at("weights/decoder"), runs, ignore=shutil.ignore_patterns(".resume", "tokenizer"))
    raw = yaml.safe_load(fresh.config.read_text())
    del raw["models"]["encoder"]
    raw["models"]["decoder"]["source"] = {"kind": "local", "path": "runs/checkpoint-{step}"}
    raw["figures"] = {"names": ["energy_over_training"]}
    return fresh.written(raw)


def test_a_folder_series_without_any_weights_is_refused(local: Study, refused: Refused):
    for file in local.folder.glob("runs/*/model.safetensors"):
        file.unlink()
    assert "none of the 3 folders that match 'runs/checkpoint-{step}' holds weights" in refused(local.snakemake())


def test_a_rank_above_half_the_width_of_a_users_own_model(local: Study, refused: Refused):
    line = refused(local.changed({"bases.ranks": [4, 20]}).snakemake())
    assert "bases.ranks: 20 is above half the width 32 of runs/checkpoint-0" in line


def test_a_sequence_longer_than_the_context_of_a_users_own_model(local: Study, refused: Refused):
    line = refused(local.changed({"tokens.sequence_length": 128}).snakemake())
    assert "tokens.sequence_length: 128 is above the context 64 of runs/checkpoint-0" in line


@pytest.mark.slow
def test_a_broken_checkpoint_stops_the_run_where_that_is_wanted(local: Study, refused: Refused):
    strict = local.changed({"models.decoder.source.on_broken": "error"})
    tmp = local.folder / "runs" / "tmp-checkpoint-13"
    tmp.mkdir()
    line = refused(strict.snakemake())
    assert "models.decoder.source.on_broken: error, and beside the checkpoints lie tmp-checkpoint-13" in line
    tmp.rmdir()
    weights = local.folder / "runs" / "checkpoint-10" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5000])
    line = refused(strict.snakemake("audit"))
    assert line.startswith("isotrace: error: on_broken is error: step10: runs/checkpoint-10: cannot be loaded")


@pytest.mark.slow
def test_a_series_whose_folders_lack_their_config(local: Study, refused: Refused):
    configs = sorted(local.folder.glob("runs/*/config.json"))
    (local.folder / "shape").mkdir()
    shutil.move(configs[0], local.folder / "shape" / "config.json")
    for file in configs[1:]:
        file.unlink()
    assert "has a config.json; name a folder that has one: models.decoder.source.config" in refused(local.snakemake())
    local.changed({"models.decoder.source.config": "shape"}).done("audit")
    lock = json.loads(local.at("checkpoints/decoder.lock.json").read_text())["checkpoints"]
    assert [c["status"] for c in lock] == ["ok", "ok", "ok"]
    assert {c["config"] for c in lock} == {"shape"}
    assert len(local.table("audit")) == 0


def test_a_broken_checkpoint_stops_nothing_and_a_copy_counts_once(local: Study, smoke: Study):
    """Step 12 is truncated, step 10 a copy of step 3: the tables say so, the others give what they gave before."""
    runs = local.folder / "runs"
    (runs / "checkpoint-10").rename(runs / "checkpoint-12")
    shutil.copytree(runs / "checkpoint-3", runs / "checkpoint-10")
    weights = runs / "checkpoint-12" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-5000])
    (runs / "tmp-checkpoint-13").mkdir()
    local.done()
    lock = {c["id"]: c for c in json.loads(local.at("checkpoints/decoder.lock.json").read_text())["checkpoints"]}
    status = {name: entry["status"] for name, entry in lock.items()}
    assert status == {"step0": "ok", "step3": "ok", "step10": "duplicate", "step12": "broken"}
    audit = local.table("audit")
    assert list(audit["checkpoint"]) == ["tmp-checkpoint-13", "step10", "step12"]
    assert list(audit["finding"]) == ["left_out", "duplicate", "broken"]
    assert json.loads(local.at("cache/decoder/step12.json").read_text())["status"] == "tombstone"
    for name in ("energy", "isotropy", "geometry", "frequency", "attention"):
        table = local.table(name)
        tombstones = table[table["checkpoint"] == "step12"]
        assert len(tombstones) == (2 if name in ("energy", "isotropy", "geometry") else 1)
        assert (tombstones["reason"] == lock["step12"]["reason"]).all()
    drawn = pd.read_csv(local.at("figures/energy_over_training.csv"))
    marks = {"step0": "ok", "step3": "ok", "step10": "duplicate", "step12": "broken"}
    assert dict(zip(drawn["checkpoint"], drawn["status"], strict=True)) == marks
    assert local.planned() == {}
    # Read as a user's own, the trained checkpoints give the rows that they gave where the workflow trained them.
    for checkpoint in ("step0", "step3"):
        stores = [study.at(f"cache/decoder/{checkpoint}.json") for study in (local, smoke)]
        files = [json.loads(store.read_text())["files"] for store in stores]
        arrays = [{name: file for name, file in found.items() if "/c/" in name} for found in files]
        assert arrays[0] == arrays[1]
