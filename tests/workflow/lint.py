"""Run ``snakemake --lint`` over the workflow and fail on every lint but one.

The project is one locked pip environment, so the lint that wants a conda environment or container a rule is
left out, by its title; all others are to be fixed. Snakemake's JSON output fails on lints of whole files
(9.27: ``LocalSourceFile is not JSON serializable``), so its text is read.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
ALLOWED = ("Specify a conda environment or container for each rule.",)
PLACE, TITLE = re.compile(r"Lints for (.+):$"), re.compile(r" {4}\* (.+):$")


def complaints(text: str) -> Iterator[str]:
    """One line a lint that is not allowed: where it is and its title, then snakemake's advice, indented."""
    place, shown = "", False
    for line in text.splitlines():
        if found := PLACE.match(line):
            place, shown = found[1].replace(f"{ROOT}/", ""), False
        elif found := TITLE.match(line):
            shown = found[1] not in ALLOWED
            if shown:
                yield f"{place}: {found[1]}"
        elif shown and line.startswith("      "):
            yield f"    {line.strip()}"


def main() -> int:
    """Print what is wrong; 1 where anything is, or where the workflow cannot be read at all."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(ROOT / "Snakefile"), "--lint"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    text = done.stdout + done.stderr
    if done.returncode and "Lints for" not in text:
        print(text)
        return 1
    found = list(complaints(text))
    print("\n".join(found) or "snakemake --lint: nothing to report")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
