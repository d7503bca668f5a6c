"""What a job does with mistakes, full disks and bugs: one line and exit code 1; tracebacks go to the log only."""

import os
import sys
from types import SimpleNamespace

import pytest
from threadpoolctl import threadpool_info

from isotrace.errors import ConfigError, DataError
from isotrace.job import job, progress


@pytest.fixture
def snakemake(tmp_path):
    return SimpleNamespace(
        params=SimpleNamespace(spec={"threads": 1, "seed": 3}),
        log=[tmp_path / "logs" / "x.log"],
        output=[tmp_path / "out" / "x"],
    )


def log_of(snakemake):
    return snakemake.log[0].read_text()


def test_the_body_gets_the_spec_and_its_output_goes_to_the_log(snakemake, capsys):
    with job(snakemake) as spec:
        print("to the log")
    assert spec["seed"] == 3
    assert log_of(snakemake) == "to the log\n"
    assert capsys.readouterr().out == ""
    print("to the terminal again")
    assert capsys.readouterr().out == "to the terminal again\n"


def test_threads_come_from_the_spec(snakemake):
    with job(snakemake):
        assert {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"} <= {1}


@pytest.mark.parametrize("kind", [DataError, ConfigError])
def test_a_mistake_of_the_users_is_one_line(snakemake, capsys, kind):
    with pytest.raises(SystemExit) as caught, job(snakemake):
        raise kind("x.txt: empty; give another file")
    assert caught.value.code == 1
    line = "isotrace: error: x.txt: empty; give another file\n"
    assert capsys.readouterr().err == line
    assert log_of(snakemake) == line


@pytest.mark.parametrize("online", [False, True])
def test_only_a_download_may_use_the_network(snakemake, monkeypatch, online):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    from huggingface_hub import is_offline_mode

    with job(snakemake, online=online):
        assert is_offline_mode() != online
        assert ("HF_HUB_OFFLINE" in os.environ) != online
    assert not is_offline_mode()
    assert "HF_HUB_OFFLINE" not in os.environ


def test_a_full_disk_is_named(snakemake, capsys):
    """/dev/full is always full."""
    with pytest.raises(SystemExit) as caught, job(snakemake), open("/dev/full", "wb", buffering=0) as stream:
        stream.write(b"x")
    assert caught.value.code == 1
    err = capsys.readouterr().err
    assert f"{snakemake.log[0].parents[1]}: No space left on device; free space or choose another folder" in err
    assert err.count("\n") == 1


def test_a_bug_is_said_in_one_line_and_its_traceback_is_in_the_log(snakemake, capsys):
    with pytest.raises(SystemExit) as caught, job(snakemake):
        raise ZeroDivisionError
    assert caught.value.code == 1
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "this is a bug" in err
    assert str(snakemake.log[0]) in err
    assert "ZeroDivisionError" in log_of(snakemake)
    assert "Traceback" in log_of(snakemake)


def test_an_unforeseen_error_of_the_disk_is_a_bug_said_once(snakemake, capsys):
    with pytest.raises(SystemExit), job(snakemake):
        raise FileNotFoundError(2, "No such file or directory", "x")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert "this is a bug" in err


def test_progress_is_written_now_and_then(capsys):
    report = progress("loss", every=2)
    for step in range(5):
        report(step, 1 / (step + 1))
    assert capsys.readouterr().out == "step 0: loss 1.0000\nstep 2: loss 0.3333\nstep 4: loss 0.2000\n"
    assert sys.stdout is not None
