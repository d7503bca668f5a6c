"""The plan beside what Snakemake plans and what a finished study holds."""

import json

import pytest
from running import Study

from isotrace.plan import plan
from isotrace.planning.calibration import Calibration
from isotrace.study import read

SPEED = Calibration(gflops=100, start=0.5, write=1000, threads=1)
RULES = {"audit_checkpoint": "audit", "audit_decoder": "audit", "audit_encoder": "audit"}


def planned(study):
    return plan(read(study.config), SPEED, cores=1, results=study.at(""))


def jobs_of(dry_run):
    found = {}
    for rule, n in dry_run.items():
        name = RULES.get(rule, rule)
        found[name] = found.get(name, 0) + n
    return found


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("name", ["smoke", "demo"])
def test_jobs_by_rule_are_those_of_a_dry_run(fresh, name):
    study = Study(fresh.repo, fresh.folder, fresh.repo / "config" / f"{name}.yaml")
    counted = {rule: one["n"] for rule, one in planned(study)["jobs"].items()}
    assert counted == jobs_of(study.planned())


def test_files_and_bytes_are_those_of_the_finished_study(smoke):
    totals = planned(smoke)["totals"]
    files = [path for path in smoke.at("").rglob("*") if path.is_file()]
    assert 0.9 < totals["files"] / len(files) < 1.1
    sizes = {name: size_of(smoke.at(name)) / 1e9 for name in ("cache", "moments", "weights", "attention")}
    assert 1 < totals["disk_gb"] / sum(sizes.values()) < 1.3
    assert 1 < totals["cache_gb"] / sizes["cache"] < 1.3
    assert 0.8 < totals["weights_gb"] / sizes["weights"] < 1.25
    assert 0.6 < totals["moments_gb"] / sizes["moments"] < 1.25  # at width 32 a quarter is metadata


@pytest.mark.slow
def test_the_target_measures_once_and_shows_the_plan_each_time(fresh):
    before = fresh.planned("plan")
    assert before == {"calibration": 1, "plan": 1}
    assert "Plan of study smoke" in fresh.done("plan")
    found = json.loads(fresh.at("plan.json").read_text())
    assert found["cores"] == 2
    assert found["calibration"] == json.loads(fresh.at("calibration.json").read_text())
    assert sorted(path.name for path in fresh.at("").iterdir()) == ["calibration.json", "plan.json"]
    assert fresh.planned("plan") == {"plan": 1}
    assert "Plan of study smoke" in fresh.done("plan", cores=1)


def test_a_series_that_is_not_there_is_one_line(fresh, refused):
    edited = fresh.changed({"models.decoder.source": {"kind": "local", "path": "none/checkpoint-{step}"}})
    assert "models.decoder.source.path" in refused(edited.snakemake("plan"))
