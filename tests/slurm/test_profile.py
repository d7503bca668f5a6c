"""The profile for Slurm on a real one: a study to its end, a job killed on the way, jobs that ask for too little."""

import hashlib
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml
from cluster import Asked, Cluster, missing, running
from running import Study, copy_repository

ABSENT = [*missing(), *([] if find_spec("snakemake_executor_plugin_slurm") else ["snakemake-executor-plugin-slurm"])]
pytestmark = [
    pytest.mark.slurm,
    pytest.mark.skipif(bool(ABSENT), reason=f"no Slurm here (apt-get install slurm-wlm munge): {', '.join(ABSENT)}"),
]
CPUS, MEMORY_MB = 4, 16000
TOO_LITTLE_MB, ENOUGH_MB = 250, 2000
LOCAL = ("corpus", "lock", "table", "figure", "report", "card")
ARRAYS = ("energy", "controls", "isotropy", "geometry", "frequency", "attention")
# What a cluster asks for beyond the profile, made quick; captures run out of memory at first, and ask for a GPU.
QUICK = ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "20"]
ASKED = ["--set-resources", f"capture:mem_mb={TOO_LITTLE_MB} if attempt == 1 else {ENOUGH_MB}", "capture:gpu=1"]


@dataclass(frozen=True)
class Ended:
    """A study that ran on the cluster: where, what Snakemake said, every job as Slurm knew it, the id of one killed."""

    study: Study
    code: int
    output: str
    jobs: list[Asked]
    killed: str

    def of(self, rule: str) -> list[Asked]:
        return [job for job in self.jobs if job.comment == f"rule_{rule}" or f"rule_{rule}_wildcards" in job.comment]


def tables(study: Study) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in study.at("tables").iterdir()}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """One model of the smoke study, three checkpoints, two buckets."""
    home = tmp_path_factory.mktemp("study")
    repo = copy_repository(home / "repo")
    raw = yaml.safe_load((repo / "config" / "smoke.yaml").read_text())
    raw["models"].pop("encoder")
    raw["figures"] = {"names": ["energy_over_training"]}
    raw["execution"]["batch_audits"] = True
    return Study(repo, home / "local", repo / "config" / "smoke.yaml").written(raw)


@pytest.fixture(scope="module")
def local(small: Study) -> Study:
    small.done()
    return small


def one_is_killed(cluster: Cluster, study: Study, command: list[str], output: Path) -> tuple[int, str]:
    """Run to the end; cancel the training once it has begun. The exit code and the id of the job cancelled."""
    killed = ""
    with output.open("w") as stream:
        process = subprocess.Popen(
            command, cwd=study.repo, env=study.environment() | cluster.environment(), stdout=stream, stderr=stream
        )
    try:
        while process.poll() is None:
            begun = [j for j in cluster.jobs() if j.comment.startswith("rule_train") and j.state == "RUNNING"]
            if begun and not killed and (study.folder / "logs" / "train" / "decoder.log").exists():
                killed = begun[0].jobid
                cluster.command("scancel", killed)
            time.sleep(0.3)
    finally:
        process.terminate()
        process.wait()
    return process.returncode, killed


@pytest.fixture(scope="module")
def ended(small: Study, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ended]:
    folder = tmp_path_factory.mktemp("cluster")
    study = Study(small.repo, folder / "run", small.config)
    study.folder.mkdir()
    profile = ["--workflow-profile", str(small.repo / "profiles" / "slurm")]
    with running(cpus=CPUS, memory=MEMORY_MB) as cluster:
        command = study.command(*profile, *QUICK, *ASKED)
        code, killed = one_is_killed(cluster, study, command, folder / "output")
        yield Ended(study, code, (folder / "output").read_text(), cluster.jobs(), killed)


def test_it_ends_with_the_tables_of_a_local_run(ended, local):
    assert ended.code == 0, ended.output[-6000:]
    assert tables(ended.study) == tables(local)


def test_a_killed_job_is_submitted_again(ended):
    states = {job.jobid: job.state for job in ended.of("train")}
    assert states.pop(ended.killed) == "CANCELLED"
    assert list(states.values()) == ["COMPLETED"]


def test_a_job_over_its_memory_is_given_more(ended):
    captures = ended.of("capture")
    first = [job for job in captures if job.memory == f"{TOO_LITTLE_MB}M"]
    assert len(first) == 3
    assert not [job for job in first if job.state == "COMPLETED"]
    again = [job for job in captures if job not in first]
    assert {job.comment for job in again} == {job.comment for job in first}
    assert {job.state for job in again} == {"COMPLETED"}


def test_a_gpu_is_asked_for_by_what_runs_the_model_alone(ended):
    assert {job.comment.split("_wildcards")[0] for job in ended.jobs if "gpu" in job.extras} == {"rule_capture"}


def test_jobs_that_are_ready_together_go_as_an_array(ended):
    """Which are depends on when captures end; each task runs once, whatever it was submitted with."""
    tasks = {job.comment.split("_wildcards")[0].removeprefix("rule_") for job in ended.jobs if "_" in job.jobid}
    assert tasks
    assert tasks <= set(ARRAYS)
    assert {rule: [job.state for job in ended.of(rule)] for rule in ARRAYS} == dict.fromkeys(ARRAYS, ["COMPLETED"] * 3)


def test_light_rules_run_where_snakemake_does(ended):
    assert not [job for rule in LOCAL for job in ended.of(rule)]


def test_nothing_reruns_because_it_would_ask_for_something_else(ended):
    assert ended.study.planned() == {}
    assert ended.study.planned("--set-resources", "energy:mem_mb=9999", "--default-resources", "runtime=1") == {}
