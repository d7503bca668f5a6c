"""One real run of the smoke study, shared by every test of this folder and by every worker of pytest-xdist.

It runs in a copy of the repository, so that a test may touch and edit modules without touching the user's.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from running import Study, copy_repository


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that all workers of one pytest call share."""
    base = tmp_path_factory.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


@pytest.fixture(scope="session")
def smoke(shared: Path) -> Study:
    """The finished smoke study: run once, by the first worker that asks. Leave its files as they are."""
    home = shared / "smoke"
    study = Study(home / "repo", home / "run", home / "repo" / "config" / "smoke.yaml")
    output = home / "output"
    with _alone(shared / "smoke.lock"):
        if not output.exists():
            copy_repository(study.repo)
            result = study.snakemake()
            output.write_text(f"{result.returncode}\n{result.stdout}")
    code, _, text = output.read_text().partition("\n")
    if code != "0":
        pytest.fail(f"the smoke study ended with exit code {code}:\n{text[-6000:]}")
    return study


@pytest.fixture
def own(smoke: Study, tmp_path: Path) -> Study:
    """A copy of the finished study and of the repository, to be changed; times of files are kept.

    Nothing is told Snakemake of the move: that it plans nothing is for the tests to see.
    """
    shutil.copytree(smoke.folder, tmp_path / "run")
    shutil.copytree(smoke.repo, tmp_path / "repo", ignore=shutil.ignore_patterns("__pycache__"))
    return Study(tmp_path / "repo", tmp_path / "run", tmp_path / "repo" / "config" / "smoke.yaml")


@pytest.fixture
def fresh(smoke: Study, tmp_path: Path) -> Study:
    """An empty working folder for the repository of the finished study, whose files it only reads."""
    (tmp_path / "run").mkdir()
    return replace(smoke, folder=tmp_path / "run")


@pytest.fixture
def refused() -> Callable[[subprocess.CompletedProcess[str]], str]:
    """Assert that a run ended as a mistake of the user's should, and give its one line."""

    def line(result: subprocess.CompletedProcess[str]) -> str:
        assert result.returncode == 1, result.stdout
        assert "Traceback" not in result.stdout
        lines = {text.strip() for text in result.stdout.splitlines() if text.startswith("isotrace: error: ")}
        assert len(lines) == 1, result.stdout
        assert "localrule capture" not in result.stdout
        assert "rule capture" not in result.stdout
        return lines.pop()

    return line
