"""`isotrace run` over real Snakemake: short output, reasons of failures and commands that repeat them, signals."""

import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from isotrace.errors import ConfigError
from isotrace.run import _kept, run

SNAKEFILE = """
rule all:
    input: "a.txt", "b-x.txt"
rule first:
    output: "a.txt"
    shell: "echo noise; touch {output}"
rule second:
    output: "b-{name}.txt"
    log: "logs/second-{name}.log"
    shell: "if [ -e fixed ]; then touch {output}; else echo 'isotrace: error: name x is odd' > {log}; exit 1; fi"
"""
RUN = "import sys; from isotrace.run import run; sys.exit(run(sys.argv[1:]))"


@pytest.fixture
def workflow(tmp_path, monkeypatch):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_failure_is_explained_and_its_command_repeats_only_it(workflow, capsys):
    assert run(["--cores", "1", "--keep-going"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("first ")
    assert "failed: second (name=x)\n    isotrace: error: name x is odd\n" in out
    assert "its log: logs/second-x.log" in out
    assert "noise" not in out
    assert "Building DAG" in (workflow / "logs" / "run.log").read_text()
    (workflow / "fixed").touch()
    (command,) = [line.partition("repeat only this: ")[2] for line in out.splitlines() if "repeat only this" in line]
    words = shlex.split(command)
    assert words[0] == "python"
    subprocess.run([sys.executable, *words[1:]], check=True, capture_output=True)
    assert (workflow / "b-x.txt").exists()
    assert run(["--cores", "1"]) == 0
    assert run(["--cores", "1"]) == 0
    assert "nothing to be done" in capsys.readouterr().out


@pytest.mark.parametrize("order", ["target first", "config first"])
def test_a_target_is_no_config_file(workflow, capsys, order):
    (workflow / "c.yaml").write_text("study: mine\n")
    config, target = ["--configfile", "c.yaml", "--cores", "1"], ["a.txt"]
    assert run([*target, *config] if order == "target first" else [*config, *target]) == 0
    assert (workflow / "a.txt").exists()
    assert "all 1 jobs done" in capsys.readouterr().out


def test_a_locked_folder_is_explained(workflow, capsys):
    locks = workflow / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    for kind in ("input", "output"):
        (locks / f"0.{kind}.lock").write_text("a.txt\n")
    assert run(["--cores", "1"]) == 1
    out = capsys.readouterr().out
    assert "isotrace: error: the folder is locked" in out
    assert "--cores 1 --unlock" in out
    assert "Traceback" not in out


def test_an_unknown_target_is_said_without_a_stack(workflow, capsys):
    assert run(["--cores", "1", "nothere"]) == 1
    out = capsys.readouterr().out
    assert "No rule to produce nothere" in out
    assert "exit code 1" in out


def test_dry_runs_are_shown_as_they_are(workflow, capfd):
    assert run(["-n"]) == 0
    assert "Job stats" in capfd.readouterr().out
    assert not (workflow / "a.txt").exists()


def test_no_snakefile_is_a_config_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no Snakefile here"):
        run([])


def test_an_interrupt_reaches_snakemake_and_its_jobs(tmp_path):
    shell = "echo $$ > pid; exec sleep 60"
    (tmp_path / "Snakefile").write_text(f'rule slow:\n    output: "s.txt"\n    shell: "{shell}"\n')
    process = subprocess.Popen([sys.executable, "-c", RUN, "--cores", "1"], cwd=tmp_path, stdout=subprocess.PIPE)
    pid = tmp_path / "pid"
    deadline = time.monotonic() + 60
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode != 0
    assert b"stopped after" in out
    assert not _running(int(pid.read_text()))


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


def test_the_repeating_command_keeps_what_says_which_workflow_this_is():
    passed = [
        "-s",
        "a/Snakefile",
        "--config",
        "x=1",
        "y=2",
        "target",
        "--profile=p",
        "--jobs",
        "4",
        "--keep-going",
        "t",
    ]
    assert _kept(passed) == ["-s", "a/Snakefile", "--config", "x=1", "y=2", "--profile=p"]
