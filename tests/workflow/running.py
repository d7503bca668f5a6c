"""Real runs of Snakemake in folders of their own."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

ROOT = Path(__file__).parents[2]
SHIPPED = ("Snakefile", "CITATION.cff", "workflow", "config", "profiles")
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
        also = os.environ.get("PYTHONPATH", "")
        return os.environ | {"PYTHONPATH": f"{self.repo / 'workflow'}{os.pathsep}{also}".rstrip(os.pathsep)}

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

    def plans(self, changes: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, int]]:
        """What dry runs of many edited configs plan, by the name of the change: rules and how many jobs."""
        raw = json.dumps({name: self.edited(edits) for name, edits in changes.items()})
        words = [str(Path(__file__).with_name("plans.py")), str(self.folder), str(self.repo / "Snakefile")]
        command = [sys.executable, "-W", "ignore", *words]
        result = subprocess.run(
            command, cwd=self.folder, env=self.environment(), input=raw, capture_output=True, text=True
        )
        assert result.returncode == 0, result.stderr
        found: dict[str, dict[str, int]] = json.loads(result.stdout)
        return found

    def edited(self, edits: dict[str, Any]) -> dict[str, Any]:
        """The config with other values at dotted keys."""
        raw: dict[str, Any] = yaml.safe_load(self.config.read_text())
        for path, value in edits.items():
            *parents, last = path.split(".")
            block = raw
            for name in parents:
                block = block.setdefault(name, {})
            block[last] = value
        return raw

    def changed(self, edits: dict[str, Any]) -> "Study":
        """The same study under a config edited at dotted keys, written beside its results."""
        return self.written(self.edited(edits))

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


def kill_group(process: "subprocess.Popen[Any]") -> None:
    """SIGKILL to a process started in a session of its own and to all its children."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
