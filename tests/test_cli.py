"""The command line: exit codes, one line for a mistake, and real runs of its commands."""

import subprocess
import sys

import pytest
import yaml

from configs import ROOT, smoke
from isotrace.cli import main


def written(folder, edits=None):
    file = folder / "mine.yaml"
    file.write_text(yaml.safe_dump(smoke(edits)))
    return str(file)


def test_without_a_command_usage_is_shown_and_the_code_is_two(capsys):
    with pytest.raises(SystemExit) as caught:
        main([])
    assert caught.value.code == 2
    assert "usage: isotrace" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "headline", "audit"])
def test_a_mistake_in_the_config_is_one_line_before_snakemake_starts(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path, {"bases.ranks": [4, 17]})
    assert main([command, "--configfile", config]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("isotrace: error: bases.ranks: 17 is above half the width 32")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not (tmp_path / ".snakemake").exists()


def test_a_config_that_is_not_there_is_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["run", "--configfile", "none.yaml"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("isotrace: error: none.yaml: ")
    assert err.count("\n") == 1


def test_headline_before_any_run_says_so_in_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["headline", "--configfile", written(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("isotrace: error: ")
    assert "results" in err
    assert err.count("\n") == 1


def test_the_audit_before_any_run_names_the_command_that_makes_it(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    config = written(tmp_path)
    assert main(["audit", "--configfile", config]) == 1
    err = capsys.readouterr().err
    assert err.endswith(f"decoder.lock.json: not there; run the audit: isotrace run audit --configfile {config}\n")
    assert err.count("\n") == 1


def test_a_dry_run_says_what_would_run_and_makes_nothing(tmp_path):
    arguments = ["run", "--configfile", written(tmp_path), "--cores", "1", "-n", "--directory", str(tmp_path)]
    command = [sys.executable, "-m", "isotrace", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert {"rule", "capture", "total"} <= {line.split()[0] for line in result.stdout.splitlines() if line}
    assert list(tmp_path.glob("results/*")) == []


def test_verifying_a_folder_without_stores_is_no_all_clear(tmp_path, capsys):
    assert main(["verify", str(tmp_path)]) == 1
    assert capsys.readouterr().err == f"isotrace: error: {tmp_path}: no such store or folder\n"
