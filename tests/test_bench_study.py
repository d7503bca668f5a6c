"""The study that dry runs are timed on: as many jobs as the bench says, and a Snakefile of as many."""

import re

import pytest

from isotrace.bench.dag import FANNED, SINGLE, dry_run
from isotrace.bench.workload.study import write_bare, write_study
from isotrace.errors import DataError
from isotrace.planning.jobs import PER_BUCKET, jobs
from isotrace.study import read

SIZES = {"models": 2, "checkpoints": 5, "buckets": 3}
PER_CHECKPOINT = ("prefetch", "audit", "capture", "frequency", "attention")


@pytest.mark.parametrize(("batched", "parts"), [(False, 3), (True, 1)])
def test_jobs_of_the_study_are_those_that_the_bench_counts(tmp_path, monkeypatch, batched, parts):
    monkeypatch.chdir(tmp_path)
    study = read(write_study(tmp_path, SIZES, batched=batched))
    found = {}
    for one in jobs(study):
        found[one.rule] = found.get(one.rule, 0) + one.n
    assert [found[rule] for rule in PER_BUCKET] == [2 * 5 * parts] * FANNED
    assert len(PER_CHECKPOINT) == SINGLE
    # A tokenizer a model is fetched too.
    assert [found[rule] for rule in PER_CHECKPOINT] == [12, 10, 10, 10, 10]


def test_bare_rules_are_as_many(tmp_path):
    text = write_bare(tmp_path, SIZES, single=SINGLE, fanned=FANNED).read_text()
    assert len(re.findall(r"^rule (one|each)\d:", text, flags=re.M)) == SINGLE + FANNED
    places = text.partition("\n")[0]
    assert places.count("/") == 2 * 5


def test_a_dry_run_that_fails_is_one_line(tmp_path):
    (tmp_path / "Snakefile").write_text("rule all:\n    input: 'missing'\n")
    with pytest.raises(DataError, match="bench dag: the dry run failed: "):
        dry_run("--snakefile", str(tmp_path / "Snakefile"), folder=tmp_path)
