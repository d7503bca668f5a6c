"""A capture that is killed, or left behind by a killed Snakemake, at random moments; what a rerun then makes of it."""

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from running import Study, kill_group

from isotrace.ownership import OWNER
from isotrace.verify import findings

KINDS = ("cache", "moments", "attention")
MODEL, CHECKPOINT = "decoder", "step3"

# What the rule's script does, without Snakemake: waits when its imports are done, so that moments fall into the work.
JOB = """
import sys
from pathlib import Path
from isotrace.capture.run import capture_checkpoint
from isotrace.params import Params
from isotrace.study import read
config, model, checkpoint = sys.argv[1:]
results = Path("results")
cache, moments, heads = (results / k / model / f"{checkpoint}.json" for k in ("cache", "moments", "attention"))
spec = Params(read(Path(config))).capture(model, checkpoint)
audit, sample = results / "checkpoints" / model / f"{checkpoint}.json", results / "sample" / f"{model}.json"
print("ready", flush=True)
sys.stdin.readline()
capture_checkpoint(audit, sample, cache=cache, moments=moments, heads=heads, spec=spec)
"""


def digests(folder: Path) -> dict[str, str]:
    files = [p for p in folder.rglob("*") if p.is_file() and p.name != ".snakemake_timestamp"]
    return {p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def manifest(study: Study, kind: str) -> Path:
    return study.at(f"{kind}/{MODEL}/{CHECKPOINT}.json")


def remove_stores(study: Study) -> None:
    for kind in KINDS:
        manifest(study, kind).unlink(missing_ok=True)
        shutil.rmtree(manifest(study, kind).with_suffix(""), ignore_errors=True)


Capture = subprocess.Popen[str]


def waiting(study: Study) -> Capture:
    """A capture that begins when it is told to."""
    return subprocess.Popen(
        [sys.executable, "-c", JOB, str(study.config), MODEL, CHECKPOINT],
        cwd=study.folder,
        env=study.environment() | {"OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def begin(process: Capture) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        pytest.fail(process.communicate()[1])
    process.stdin.write("go\n")
    process.stdin.flush()


def ended(process: Capture) -> tuple[int, str]:
    errors = process.communicate()[1]
    return process.returncode, errors


def nothing_half(study: Study) -> None:
    """What has a manifest is whole."""
    for kind in KINDS:
        if manifest(study, kind).exists():
            assert findings(manifest(study, kind)) == []


def stores(study: Study) -> dict[str, str]:
    """Every file of the three stores, their manifests, and whatever an attempt left beside them."""
    found = {}
    for kind in KINDS:
        for name, sha256 in digests(study.at(f"{kind}/{MODEL}")).items():
            if CHECKPOINT in name and not name.endswith(".parquet"):
                found[f"{kind}/{name}"] = sha256
    return found


@pytest.fixture(scope="module")
def work(smoke: Study, tmp_path_factory: pytest.TempPathFactory) -> tuple[Study, float]:
    """A folder with what capture reads, to capture in without Snakemake, and how many seconds that takes."""
    folder = tmp_path_factory.mktemp("kill")
    study = Study(smoke.repo, folder, smoke.config)
    for name in ("checkpoints", "sample", "weights"):
        shutil.copytree(smoke.at(name), study.at(name))
    process = waiting(study)
    begin(process)
    start = time.monotonic()
    assert ended(process) == (0, "")
    assert stores(study) == stores(smoke)
    return study, time.monotonic() - start


@pytest.mark.parametrize("seed", range(3))
def test_a_capture_killed_at_any_moment_is_made_up_for(smoke, work, seed):
    study, seconds = work
    remove_stores(study)
    killed, heir = waiting(study), waiting(study)
    begin(killed)
    time.sleep(random.Random(seed).uniform(0, seconds))
    kill_group(killed)
    killed.communicate()
    nothing_half(study)
    begin(heir)
    assert ended(heir) == (0, "")
    assert stores(study) == stores(smoke)


def test_an_orphan_leaves_the_stores_to_its_heir(smoke, work):
    """The orphan is stopped when it has claimed its stores, so that it comes to each of them after its heir."""
    study, _ = work
    remove_stores(study)
    orphan, heir = waiting(study), waiting(study)
    begin(orphan)
    while not all((manifest(study, kind).with_suffix("") / OWNER).exists() for kind in KINDS):
        assert orphan.poll() is None
        time.sleep(0.001)
    os.kill(orphan.pid, signal.SIGSTOP)
    begin(heir)
    assert ended(heir) == (0, "")
    sealed = {kind: manifest(study, kind).read_bytes() for kind in KINDS}
    os.kill(orphan.pid, signal.SIGCONT)
    code, errors = ended(orphan)
    assert code == 1
    assert errors.splitlines()[-1].startswith("isotrace.errors.DataError: ")
    assert "another run of this job took over" in errors
    assert {kind: manifest(study, kind).read_bytes() for kind in KINDS} == sealed
    assert stores(study) == stores(smoke)


def orphans(folder: Path) -> list[int]:
    """Processes that work in a folder, by /proc."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").resolve() == folder.resolve():
                found.append(int(entry.name))
    return found


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(25))
def test_a_killed_workflow_gives_the_tables_of_an_undisturbed_one(smoke, own, seed):
    """Killed with all its jobs, or alone, so that its capture goes on beside the rerun's."""
    remove_stores(own)
    process = subprocess.Popen(
        own.command(f"results/cache/{MODEL}/{CHECKPOINT}.json"),
        cwd=own.repo,
        env=own.environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    log = own.folder / "logs" / "capture" / MODEL / f"{CHECKPOINT}.log"
    log.unlink(missing_ok=True)
    while not log.exists() and process.poll() is None:
        time.sleep(0.005)
    moments = random.Random(seed)
    time.sleep(moments.uniform(0, 4))
    if seed % 2:
        kill_group(process)
    else:
        process.kill()
        process.wait()
    nothing_half(own)
    own.done("--unlock")
    own.done("tables")
    while orphans(own.folder):
        time.sleep(0.05)
    assert digests(own.at("tables")) == digests(smoke.at("tables"))
    assert stores(own) == stores(smoke)
    assert not [p for p in own.at("").rglob("*") if p.name.endswith((".part", ".lock", ".owner"))]
