"""The machine as it is, in numbers and names; every check of the doctor reads it and nothing else of the system.

So that a full disk or a missing program is a value that a caller may choose (our choice).
"""

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path

PROGRAMS = ("chromium", "pdflatex", "sbatch", "sinfo", "squeue")


@dataclass(frozen=True)
class Machine:
    """python: its version; packages: by name in lower case; programs: paths by name, only those that are there.

    cores: that this process may use; memory, available: bytes in all and free now, of the control group where it is
    less; disk, files: bytes and files that may still be written at ``folder``, None where the disk does not say; held:
    bytes of results that lie there already; environment: its variables.
    """

    python: tuple[int, int]
    packages: Mapping[str, str]
    programs: Mapping[str, str]
    cores: int
    memory: int | None
    available: int | None
    disk: int
    files: int | None
    folder: Path
    held: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)


def this_machine(results: Path) -> Machine:
    """What there is here; ``results`` is where the study would write."""
    folder = existing(results)
    stats = os.statvfs(folder)
    memory = _memory()
    return Machine(
        python=sys.version_info[:2],
        packages={d.metadata["Name"].lower().replace("_", "-"): d.version for d in distributions()},
        programs={name: found for name in PROGRAMS if (found := shutil.which(name))},
        cores=len(os.sched_getaffinity(0)),
        memory=memory.get("MemTotal"),
        available=memory.get("MemAvailable"),
        disk=stats.f_bavail * stats.f_frsize,
        files=stats.f_favail if stats.f_files else None,
        folder=folder,
        held=sum(path.stat().st_size for path in results.rglob("*") if path.is_file()),
        environment=dict(os.environ),
    )


def existing(folder: Path) -> Path:
    """The folder, or the nearest above it that exists."""
    whole = folder.expanduser().absolute()
    return next(path for path in (whole, *whole.parents) if path.exists())


def _memory() -> dict[str, int]:
    """Bytes by name; a container's bound where it is less. Empty where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return {}
    found = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.split()[1].isdecimal()}
    bound = _number(Path("/sys/fs/cgroup/memory.max"))
    if bound is not None and bound < found.get("MemTotal", 0):
        free = bound - (_number(Path("/sys/fs/cgroup/memory.current")) or 0)
        found |= {"MemTotal": bound, "MemAvailable": min(found["MemAvailable"], free)}
    return found


def _number(file: Path) -> int | None:
    try:
        text = file.read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdecimal() else None
