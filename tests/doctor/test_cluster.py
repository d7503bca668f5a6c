"""The cluster as its own commands describe it: small programs on PATH answer in the place of a Slurm's."""

import os

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.cli import main
from isotrace.doctor.cluster import Cluster, ask

SETTINGS = """Configuration data as of 2026-01-01T00:00:00
MaxArraySize            = {array}
MaxJobCount             = 10000
MinJobAge               = {age} sec
"""


@pytest.fixture
def answering(tmp_path, monkeypatch):
    """Put programs first on PATH that print what they are given, or fail where that is None."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    def put(**said):
        for name, text in said.items():
            program = folder / name
            program.write_text("#!/bin/sh\n" + ("exit 1\n" if text is None else f"cat <<'END'\n{text}\nEND\n"))
            program.chmod(0o755)

    return put


def test_partitions_and_bounds_are_what_sinfo_and_scontrol_say(answering):
    answering(sinfo="long\nshort\nlong", scontrol=SETTINGS.format(array=1001, age=300))
    assert ask() == Cluster(("long", "short"), longest_array=1001, remembers=300)


def test_what_a_cluster_does_not_say_is_not_known(answering):
    answering(sinfo="long", scontrol="MaxJobCount = 10000")
    assert ask() == Cluster(("long",))
    answering(scontrol=None)
    assert ask() == Cluster(("long",))


def test_where_no_controller_answers_there_is_no_cluster(answering):
    answering(sinfo=None, scontrol=SETTINGS.format(array=1001, age=300))
    assert ask() is None


@pytest.mark.parametrize(
    ("array", "age", "warned"), [(10001, 300, []), (1001, 300, ["MaxArraySize"]), (10001, 30, ["MinJobAge"])]
)
def test_the_command_holds_the_shipped_profile_against_the_cluster(
    tmp_path, monkeypatch, capsys, answering, array, age, warned
):
    pytest.importorskip("snakemake_executor_plugin_slurm", reason="the extra slurm is not installed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "Snakefile").touch()
    config = tmp_path / "mine.yaml"
    config.write_text(yaml.safe_dump(smoke({"execution.device": "cpu"})))
    answering(sbatch="", squeue="", sinfo="long", scontrol=SETTINGS.format(array=array, age=age))
    profile = str(ROOT / "profiles" / "slurm")
    assert main(["doctor", "--configfile", str(config), "--workflow-profile", profile]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warn  scheduler")]
    assert [name for name in ("MaxArraySize", "MinJobAge") if any(name in line for line in told)] == warned
