"""The cluster that a SLURM profile submits to, as its own commands describe it, and whether the profile suits it.

An array of jobs is as long as what is ready at once, and Slurm refuses one above its MaxArraySize.
"""

import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from isotrace.doctor.findings import Finding, fail, ok, warn
from isotrace.doctor.machine import Machine

PLUGIN = "snakemake-executor-plugin-slurm"
_FIRST_LOOK = 40
"""Seconds until the executor first asks for a job's state, unless the profile says otherwise."""
_PATIENCE = 10
"""Seconds that a command may take."""


@dataclass(frozen=True)
class Cluster:
    """partitions: their names; longest_array: MaxArraySize; remembers: MinJobAge in seconds; None: it does not say."""

    partitions: tuple[str, ...]
    longest_array: int | None = None
    remembers: int | None = None


Ask = Callable[[], Cluster | None]


def ask() -> Cluster | None:
    """The cluster, None where no controller answers."""
    partitions = _said("sinfo", "--noheader", "--format=%R")
    if partitions is None:
        return None
    settings = _said("scontrol", "show", "config") or ""
    return Cluster(
        tuple(sorted(set(partitions.split()))),
        longest_array=_setting("MaxArraySize", settings),
        remembers=_setting("MinJobAge", settings),
    )


def _setting(name: str, settings: str) -> int | None:
    found = re.search(rf"{name}\s*=\s*(\d+)", settings)
    return int(found[1]) if found else None


def _said(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout


def slurm(machine: Machine, content: dict[str, Any], cluster: Ask) -> Iterator[Finding]:
    """What submitting by a profile of this content takes."""
    if PLUGIN not in machine.packages:
        yield fail("scheduler", f"{PLUGIN} is not installed", "pip install -e '.[slurm]'")
    missing = [name for name in ("sbatch", "squeue") if name not in machine.programs]
    if missing:
        yield fail("scheduler", f"no {' and no '.join(missing)} here", "start isotrace on a login node of the cluster")
        return
    found = cluster()
    if found is None:
        yield fail("scheduler", "sinfo does not answer", "ask whoever runs the cluster whether its controller is up")
        return
    asked = _resources(content)
    yield _placed(asked, found)
    jobs = content.get("jobs")
    if content.get("slurm-array-jobs") and isinstance(jobs, int) and jobs >= (found.longest_array or jobs + 1):
        said = f"jobs: {jobs}, but an array may have {found.longest_array} (MaxArraySize)"
        yield warn("scheduler", said, "if more jobs are ready at once, lower `jobs` and empty `slurm-array-jobs`")
    wait = int(content.get("slurm-init-seconds-before-status-checks", _FIRST_LOOK))
    if content.get("slurm-status-command") == "squeue" and found.remembers is not None and 3 * wait > found.remembers:
        said = f"squeue forgets a job {found.remembers} s after its end (MinJobAge), and is first asked after {wait} s"
        do = f"set slurm-init-seconds-before-status-checks to {found.remembers // 3} at most"
        yield warn("scheduler", said, do)


def _placed(asked: dict[str, str], found: Cluster) -> Finding:
    """Partition and account."""
    partition = asked.get("slurm_partition")
    if partition is not None and not set(partition.split(",")) <= set(found.partitions):
        said = f"no partition {partition}; there are {', '.join(found.partitions)}"
        return fail("scheduler", said, "change slurm_partition under default-resources of the profile")
    unset = [name for name in ("slurm_partition", "slurm_account") if name not in asked]
    if unset:
        do = "set them under default-resources where the cluster has no defaults"
        return warn("scheduler", f"partitions {', '.join(found.partitions)}; {' and '.join(unset)} not set", do)
    return ok("scheduler", f"partition {partition}")


def _resources(content: dict[str, Any]) -> dict[str, str]:
    """Resources of every job, which a profile gives as a mapping or as KEY=VALUE texts."""
    given = content.get("default-resources") or {}
    pairs = given.items() if isinstance(given, dict) else (str(text).split("=", 1) for text in given)
    return {str(pair[0]): str(pair[-1]) for pair in map(tuple, pairs)}
