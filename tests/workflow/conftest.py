"""One real run of the smoke study, shared by every test of this folder and by every worker of pytest-xdist.

It runs in a copy of the repository, so that a test may touch and edit modules without touching the user's.
"""

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

ROOT = Path(__file__).parents[2]
SHIPPED = ("Snakefile", "workflow", "config", "profiles")
EDITED = "edited.yaml"


@dataclass(frozen=True)
class Study:
    """A working folder in which Snakemake runs ``config`` of the repository at ``repo``."""

    repo: Path
    folder: Path
    config: Path

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        where = ["--snakefile", str(self.repo / "Snakefile"), "--directory", str(self.folder)]
        known = [*where, "--configfile", str(self.config), "--cores", str(cores)]
        return [sys.executable, "-m", "snakemake", *known, *arguments]

    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.repo / "workflow")}

    def snakemake(self, *arguments: str, cores: int = 2) -> subprocess.CompletedProcess[str]:
        """Run to the end; stdout and stderr come back together in ``stdout``."""
        return subprocess.run(
            self.command(*arguments, cores=cores),
            cwd=self.repo,
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def done(self, *arguments: str, cores: int = 2) -> str:
        """Run to the end, successfully; the output."""
        result = self.snakemake(*arguments, cores=cores)
        assert result.returncode == 0, result.stdout
        return result.stdout

    def planned(self, *arguments: str) -> dict[str, int]:
        """How many jobs of each rule a dry run plans; empty where nothing is to be done."""
        return counted(self.done("--dry-run", *arguments))

    def changed(self, edits: dict[str, Any]) -> "Study":
        """The same study under a config edited at dotted keys, written beside its results."""
        raw = yaml.safe_load(self.config.read_text())
        for path, value in edits.items():
            *parents, last = path.split(".")
            block = raw
            for name in parents:
                block = block.setdefault(name, {})
            block[last] = value
        return self.written(raw)

    def written(self, raw: dict[str, Any]) -> "Study":
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / EDITED
        file.write_text(yaml.safe_dump(raw, sort_keys=False))
        return replace(self, config=file)

    def at(self, path: str) -> Path:
        return self.folder / "results" / path

    def table(self, name: str) -> pd.DataFrame:
        return pd.read_parquet(self.at(f"tables/{name}.parquet"))


def counted(output: str) -> dict[str, int]:
    """The first table of job counts in Snakemake's output, without its targets that run nothing."""
    lines = iter(output.splitlines())
    for line in lines:
        if line.strip() == "Job stats:":
            break
    found = {}
    for line in lines:
        if match := re.match(r"([a-z_]+) +(\d+)$", line):
            found[match[1]] = int(match[2])
        elif not line.strip():
            break
    return {rule: n for rule, n in found.items() if rule not in ("default", "all", "total")}


def copy_repository(to: Path) -> Path:
    """What is shipped to a user, without results and tests."""
    for name in SHIPPED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, to / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            to.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, to / name)
    return to


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
    """A copy of the finished study and of the repository, to be changed; times of files are kept."""
    shutil.copytree(smoke.folder, tmp_path / "run")
    shutil.copytree(smoke.repo, tmp_path / "repo", ignore=shutil.ignore_patterns("__pycache__"))
    for record in (tmp_path / "run" / ".snakemake" / "metadata").iterdir():
        # Snakemake knows claims and captions by their absolute path, which the copy has changed.
        record.write_text(record.read_text().replace(str(smoke.repo), str(tmp_path / "repo")))
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


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """SIGKILL to a process started in a session of its own and to all its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
