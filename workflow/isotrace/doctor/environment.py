"""Is what isotrace is made of here, in the versions it was tested with, and may it be written where it must?

Optional programs are named with what they are for; our choice of what counts as a failure.
"""

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from isotrace.doctor.findings import Finding, fail, ok, warn
from isotrace.doctor.machine import Machine, existing

LEAST = (3, 11)
REQUIRED = ("snakemake", "torch", "transformers", "zarr", "xarray", "pandas", "pyarrow", "scipy", "matplotlib")
OPTIONAL = {"chromium": "a test that looks at the cards", "pdflatex": "compiling the paper's sample page"}
_SHOWN = 5


def python(machine: Machine) -> Finding:
    """The version of Python."""
    said = f"{machine.python[0]}.{machine.python[1]}"
    if machine.python < LEAST:
        return fail("python", said, "isotrace needs Python 3.11 or later; make a new environment with one")
    return ok("python", said)


def packages(machine: Machine, lock: Path) -> Finding:
    """Installed versions against those that ``requirements.lock`` pins."""
    missing = [name for name in REQUIRED if name not in machine.packages]
    if missing:
        return fail("packages", f"missing: {', '.join(missing)}", "pip install -r requirements.lock, then -e .")
    if not lock.is_file():
        return warn("packages", f"no {lock} to compare with", "call it in the folder of the workflow")
    pinned = dict(_pins(lock.read_text(encoding="utf-8").splitlines()))
    other = [
        f"{name} {machine.packages[name]} (locked {version})"
        for name, version in pinned.items()
        if name in machine.packages and machine.packages[name].partition("+")[0] != version.partition("+")[0]
    ]
    if other:
        more = f" and {len(other) - _SHOWN} more" if len(other) > _SHOWN else ""
        do = "for numbers that are the same to the bit: pip install -r requirements.lock"
        return warn("packages", f"{', '.join(other[:_SHOWN])}{more}", do)
    return ok("packages", f"{len(set(pinned) & set(machine.packages))} as {lock.name} has them")


def _pins(text: Iterable[str]) -> Iterator[tuple[str, str]]:
    for line in text:
        name, pinned, version = line.partition("==")
        if pinned:
            yield name.strip().lower().replace("_", "-"), version.split()[0].rstrip(";")


def folders(wanted: Iterable[Path]) -> Iterator[Finding]:
    """Whether a file can be made in each folder, or in the one above in which it would be made."""
    bad = []
    names = list(dict.fromkeys(wanted))
    for folder in names:
        try:
            with tempfile.NamedTemporaryFile(dir=existing(folder)):
                pass
        except OSError as error:
            bad.append(
                fail("folders", f"{folder}: {error.strerror}", "choose another with pathvars, or make it writable")
            )
    yield from bad or [ok("folders", f"{', '.join(map(str, names))} can be written")]


def optional(machine: Machine) -> Iterator[Finding]:
    """Programs without which only something beside the study is missing."""
    for name, purpose in OPTIONAL.items():
        there = machine.programs.get(name)
        yield ok("optional", f"{name}: {there}" if there else f"{name} is not there; needed for {purpose} alone")
