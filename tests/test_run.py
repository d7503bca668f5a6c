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
from isotrace.run import _allowing, _kept, _profile, run, split_configs

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
    (workflow / "logs").mkdir()
    (workflow / "logs" / "run.log").write_text("of the run that goes on\n")
    assert run(["--cores", "1"]) == 1
    assert (workflow / "logs" / "run.log").read_text() == "of the run that goes on\n"
    out = capsys.readouterr().out
    assert "isotrace: error: the folder is locked" in out
    assert "--cores 1 --unlock" in out
    assert "Traceback" not in out


def test_an_unknown_target_is_said_without_a_stack(workflow, capsys):
    assert run(["--cores", "1", "nothere"]) == 1
    out = capsys.readouterr().out
    assert "No rule to produce nothere" in out
    assert "exit code 1" in out


def test_a_dry_run_is_a_short_table_and_its_output_a_log(workflow, capfd):
    assert run(["-n", "--cores", "1"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["rule", "jobs", "why"],
        ["first", "1", "output", "missing"],
        ["second", "1", "output", "missing"],
    ]
    assert not (workflow / "a.txt").exists()
    assert "Job stats" in (workflow / "logs" / "dry-run.log").read_text()
    (workflow / "a.txt").touch()
    assert run(["-n", "--cores", "1", "a.txt"]) == 0
    assert capfd.readouterr().out.splitlines()[0] == "nothing to do"
    assert run(["-n", "--cores", "1", "nothere"]) == 1
    assert "No rule to produce nothere" in capfd.readouterr().out


def test_leave_to_capture_again_goes_beside_other_config():
    assert _allowing(["t"]) == ["t", "--config", "recapture=true"]
    assert _allowing(["-C", "a=1", "t"]) == ["--config", "recapture=true", "a=1", "t"]


def test_no_snakefile_is_a_config_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match="no Snakefile here"):
        run([])


def _interruptible():
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_an_interrupt_reaches_snakemake_and_its_jobs(tmp_path):
    shell = "echo $$ > pid; exec sleep 60"
    (tmp_path / "Snakefile").write_text(f'rule slow:\n    output: "s.txt"\n    shell: "{shell}"\n')
    command = [sys.executable, "-c", RUN, "--cores", "1"]
    # A shell that started these tests with & or nohup had SIGINT ignored, which its children inherit.
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, preexec_fn=_interruptible)
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
        "--jobs",
        "4",
        "--keep-going",
        "t",
    ]
    assert _kept(passed) == ["-s", "a/Snakefile", "--config", "x=1", "y=2"]


def test_a_target_after_the_config_is_a_target(workflow, capsys):
    (workflow / "c.yaml").write_text("x: 1\n")
    assert split_configs(["c.yaml", "a.txt"]) == (["c.yaml"], ["a.txt"])
    assert split_configs(["c.yaml", "missing.yaml", "tables"]) == (["c.yaml", "missing.yaml"], ["tables"])
    assert run(["--configfile", "c.yaml", "a.txt", "--cores", "1"]) == 0
    assert (workflow / "a.txt").is_file()
    assert not (workflow / "b-x.txt").exists()


def test_a_profile_that_is_named_says_how_many_cores(workflow, capsys):
    (workflow / "c.yaml").write_text("x: 1\n")
    (workflow / "mine").mkdir()
    (workflow / "mine" / "config.yaml").write_text("cores: 1\n")
    assert run(["--configfile", "c.yaml", "--workflow-profile", "mine", "a.txt"]) == 0
    assert "Provided cores: 1 " in (workflow / "logs" / "run.log").read_text()
    assert _profile(["a", "--profile=p", "--workflow-profile", "q", "b"]) == (
        ["--profile=p", "--workflow-profile", "q"],
        ["a", "b"],
    )
