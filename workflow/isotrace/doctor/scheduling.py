"""Would Snakemake start here: the Snakefile, the profile, the scheduler it names, locks of other runs.

Facts about Snakemake 9: an empty profile aborts every call, and a lock is left behind by a killed run.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from isotrace.doctor.cluster import Ask, slurm
from isotrace.doctor.findings import Finding, fail, ok, warn
from isotrace.doctor.machine import Machine

DEFAULT = Path("profiles/default")


def snakefile(folder: Path) -> Finding:
    """Is there a workflow to run in this folder?"""
    found = next((name for name in ("Snakefile", "workflow/Snakefile") if (folder / name).is_file()), None)
    if found is None:
        do = "go to the folder of the workflow, or pass --snakefile and --directory to isotrace run"
        return fail("snakefile", f"none in {folder}", do)
    return ok("snakefile", found)


def profile(machine: Machine, folder: Path, cluster: Ask) -> Iterator[Finding]:
    """The profile of a folder and what its executor needs; the default one may be missing. ``cluster`` asks SLURM."""
    file = next((folder / name for name in ("config.v9+.yaml", "config.yaml") if (folder / name).is_file()), None)
    if file is None:
        if folder == DEFAULT:
            yield warn("profile", f"no {folder}/config.yaml", "copy it from the workflow, whose rerun triggers it sets")
        else:
            yield fail("profile", f"no {folder}/config.yaml", "name a folder that holds one, as profiles/slurm")
        return
    content = _read(file)
    if isinstance(content, str):
        yield fail("profile", f"{file}: {content}", "write it as KEY: VALUE lines; profiles/ has two that work")
        return
    yield ok("profile", f"{file}: {content.get('executor', 'local')} executor")
    if content.get("executor") == "slurm":
        yield from slurm(machine, content, cluster)


def _read(file: Path) -> dict[str, Any] | str:
    """The profile, or what is wrong with it."""
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        return f"cannot be read ({' '.join(str(error).split())[:80]})"
    if not isinstance(content, dict) or not content:
        return "is empty, and Snakemake then stops every call" if not content else "is no mapping"
    return content


def locks(folder: Path) -> Finding:
    """Locks of a run that goes on, or of one that was killed."""
    held = [file for file in (folder / ".snakemake" / "locks").glob("*") if file.is_file()]
    if held:
        do = "wait for the run that goes on; if none does: isotrace run --unlock, with its --configfile"
        return warn("locks", f"{folder}/.snakemake/locks holds {len(held)}", do)
    return ok("locks", "none")
