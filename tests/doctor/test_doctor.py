"""The doctor on machines that a test makes up: each thing that would go wrong is found, and named with its remedy."""

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.cli import main
from isotrace.doctor import environment, scheduling, sizes
from isotrace.doctor.cluster import PLUGIN, Cluster
from isotrace.doctor.examine import device, examine
from isotrace.doctor.findings import lines, ok, warn
from isotrace.doctor.hub import hub
from isotrace.doctor.machine import Machine, this_machine
from isotrace.study import load, read, validated

GB = 10**9
SOUND = Machine(
    python=(3, 11),
    packages=dict.fromkeys([*environment.REQUIRED, PLUGIN], "1.0"),
    programs={"sbatch": "/usr/bin/sbatch", "squeue": "/usr/bin/squeue"},
    cores=4,
    memory=16 * GB,
    available=8 * GB,
    disk=100 * GB,
    files=10**6,
    folder=Path("results"),
)
TOTALS = {"disk_gb": 10.0, "files": 1000, "memory_gb": 1.0}


def no_cluster():
    raise AssertionError("only a SLURM profile asks for a cluster")


def written(folder, edits=None):
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(smoke(edits)))
    return file


def workplace(tmp_path):
    """A folder in which nothing is wrong."""
    (tmp_path / "Snakefile").touch()
    (tmp_path / "requirements.lock").write_text("torch==1.0\nzarr==1.0\n")
    profile = tmp_path / "profiles" / "default"
    profile.mkdir(parents=True)
    (profile / "config.yaml").write_text("cores: all\n")
    return profile


def examined(tmp_path, *, machine=SOUND, profile=None, edits=None):
    folders = {name: str(tmp_path / name) for name in ("results", "logs", "benchmarks")}
    config = written(tmp_path, {"pathvars": folders} | (edits or {}))
    found = examine(
        config,
        lambda _: machine,
        profile=profile or workplace(tmp_path),
        cores=None,
        cuda=lambda: False,
        token=lambda: None,
        cluster=no_cluster,
        folder=tmp_path,
    )
    return {one.what: one for one in found if one.status != "ok"} or None


def test_where_all_is_well_nothing_is_said_to_be_done(tmp_path):
    assert examined(tmp_path) is None


@pytest.mark.parametrize(
    ("machine", "what", "status"),
    [
        ({"disk": 10**5}, "disk", "fail"),
        ({"files": 10}, "files", "fail"),
        ({"memory": 10**7}, "memory", "fail"),
        ({"available": 10**9}, "memory", "warn"),
        ({"memory": None}, "memory", "warn"),
        ({"python": (3, 10)}, "python", "fail"),
        ({"packages": {}}, "packages", "fail"),
        ({"packages": SOUND.packages | {"torch": "2.0"}}, "packages", "warn"),
    ],
    ids=str,
)
def test_each_shortage_is_found_alone(tmp_path, machine, what, status):
    found = examined(tmp_path, machine=replace(SOUND, **machine))
    assert {name: one.status for name, one in found.items()} == {what: status}
    assert all(one.do for one in found.values())


def test_a_config_that_is_refused_is_named_and_the_rest_is_looked_at(tmp_path):
    found = examined(tmp_path, edits={"bases.ranks": [4, 17]}, machine=replace(SOUND, python=(3, 9)))
    assert set(found) == {"config", "python"}
    assert "bases.ranks: 17 is above half the width 32" in found["config"].said


@pytest.mark.parametrize(
    ("free", "held", "status"), [(9, 0, "fail"), (9, 5, "ok"), (10.5, 0, "warn"), (12, 0, "ok"), (0, 9.9, "fail")]
)
def test_what_lies_there_already_needs_no_room(free, held, status):
    machine = replace(SOUND, disk=int(free * GB), held=int(held * GB))
    (found,) = sizes.disk(machine, TOTALS)
    assert found.status == status
    assert f"{free:g} GB free" in found.said or free == 0


def test_a_version_with_a_build_is_the_locked_one(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("# pinned\ntorch==2.13.0\nnot-here==3\n")
    machine = replace(SOUND, packages=SOUND.packages | {"torch": "2.13.0+cpu"})
    assert environment.packages(machine, lock) == ok("packages", "1 as requirements.lock has them")
    assert environment.packages(SOUND, lock).said == "torch 1.0 (locked 2.13.0)"
    assert environment.packages(SOUND, tmp_path / "none").status == "warn"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty, and Snakemake then stops every call"),
        ("- cores\n", "is no mapping"),
        ("cores: [\n", "cannot be read"),
    ],
)
def test_a_broken_profile_fails_with_its_reason(tmp_path, content, said):
    (tmp_path / "config.yaml").write_text(content)
    (found,) = scheduling.profile(SOUND, tmp_path, no_cluster)
    assert found.status == "fail"
    assert said in found.said


def test_a_profile_that_is_not_there_fails_and_the_default_one_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert [f.status for f in scheduling.profile(SOUND, tmp_path / "none", no_cluster)] == ["fail"]
    assert [f.status for f in scheduling.profile(SOUND, scheduling.DEFAULT, no_cluster)] == ["warn"]


NAMED = {"slurm_partition": "long", "slurm_account": "mine"}
SOON = {"slurm-init-seconds-before-status-checks": 20}


@pytest.mark.parametrize(
    ("machine", "profile", "statuses"),
    [
        (SOUND, {"default-resources": NAMED}, ["ok"]),
        (SOUND, {"default-resources": [f"{name}={value}" for name, value in NAMED.items()]}, ["ok"]),
        (SOUND, {"default-resources": {"slurm_account": "mine"}}, ["warn"]),
        (SOUND, {}, ["warn"]),
        (SOUND, {"default-resources": NAMED | {"slurm_partition": "gone"}}, ["fail"]),
        (SOUND, {"default-resources": NAMED, "slurm-array-jobs": "energy", "jobs": 1001}, ["ok", "warn"]),
        (SOUND, {"default-resources": NAMED, "slurm-array-jobs": "energy", "jobs": 1000}, ["ok"]),
        (SOUND, {"default-resources": NAMED, "jobs": 1001}, ["ok"]),
        (SOUND, {"default-resources": NAMED, "slurm-status-command": "squeue"}, ["ok", "warn"]),
        (SOUND, {"default-resources": NAMED, "slurm-status-command": "squeue"} | SOON, ["ok"]),
        (replace(SOUND, programs={}), {}, ["fail"]),
        (replace(SOUND, packages={}), {"default-resources": NAMED}, ["fail", "ok"]),
    ],
)
def test_a_cluster_needs_its_plugin_its_programs_and_its_names(tmp_path, machine, profile, statuses):
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"executor": "slurm"} | profile))
    first, *found = scheduling.profile(machine, tmp_path, lambda: Cluster(("long", "short"), 1001, 60))
    assert first.status == "ok"
    assert [one.status for one in found] == statuses


def test_a_cluster_that_does_not_answer_fails(tmp_path):
    (tmp_path / "config.yaml").write_text("executor: slurm\n")
    assert [one.said for one in scheduling.profile(SOUND, tmp_path, lambda: None)][1:] == ["sinfo does not answer"]


def test_the_shipped_profiles_are_sound():
    for name in ("default", "slurm"):
        found = scheduling.profile(SOUND, ROOT / "profiles" / name, lambda: Cluster(("long",)))
        assert {one.status for one in found} <= {"ok", "warn"}


def test_locks_of_another_run_are_told_of(tmp_path):
    assert scheduling.locks(tmp_path).status == "ok"
    held = tmp_path / ".snakemake" / "locks"
    held.mkdir(parents=True)
    (held / "0.output.lock").touch()
    assert "isotrace run --unlock" in scheduling.locks(tmp_path).do


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    found = list(environment.folders([tmp_path / "new" / "below", tmp_path / "file" / "below"]))
    assert [one.status for one in found] == ["fail"]
    assert str(tmp_path / "file" / "below") in found[0].said
    assert not (tmp_path / "new").exists()


def test_more_threads_than_cores_are_warned_of():
    study = load(smoke({"execution.numeric_threads": 8}))
    assert sizes.threads(SOUND, study, 4).status == "warn"
    assert sizes.threads(SOUND, load(smoke()), 8).do.startswith("isotrace run --cores 4")
    assert sizes.threads(SOUND, load(smoke()), 4).status == "ok"


def test_a_device_that_is_asked_for_must_be_there():
    wanted = {name: validated(smoke({"execution.device": name})) for name in ("cpu", "auto", "cuda")}
    assert [device(wanted[name], lambda: False).status for name in wanted] == ["ok", "ok", "fail"]
    assert device(wanted["cuda"], lambda: True) == ok("device", "cuda")


def test_a_series_on_the_hub_that_is_not_resolved_fails():
    study = read(ROOT / "config" / "pythia.yaml")
    found = list(hub(replace(SOUND, environment={"HF_HUB_OFFLINE": "1"}), study, lambda: None))
    assert {one.status for one in found} == {"fail", "warn"}
    assert any("isotrace resolve pythia-160m " in one.do for one in found)
    assert found[0].said == "HF_HUB_OFFLINE is set"
    assert list(hub(SOUND, load(smoke()), lambda: None)) == []


def test_bounds_of_the_config_are_warnings(tmp_path):
    assert set(examined(tmp_path, edits={"limits": {"files": 10, "hours": 1e-9}})) == {"limits"}


def test_what_to_do_stands_below_its_finding():
    told = lines([ok("disk", "plenty"), warn("locks", "one", "wait")])
    assert [line.split() for line in told] == [["ok", "disk", "plenty"], ["warn", "locks", "one"], ["->", "wait"]]


def test_this_machine_has_what_these_tests_run_on(tmp_path):
    (tmp_path / "kept").write_bytes(b"12345")
    machine = this_machine(tmp_path)
    assert machine.packages["pytest"] == pytest.__version__
    assert (machine.held, machine.folder) == (5, tmp_path)
    assert machine.disk > 0
    assert this_machine(tmp_path / "new" / "below").folder == tmp_path


def test_the_command_fails_where_a_check_fails(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path, {"execution.device": "cpu"})
    assert main(["doctor", "--configfile", str(config)]) == 1
    told = capsys.readouterr().out.splitlines()
    assert any(line.startswith("fail  snakefile") for line in told)
    assert told[-1].endswith(" fail")
    workplace(tmp_path)
    (tmp_path / "requirements.lock").unlink()
    assert main(["doctor", "--configfile", str(config)]) == 0
