"""Files of the workflow itself as inputs of rules: under a path that stays when the workflow's folder moves.

Snakemake reruns what reads a file by another path; so a working folder elsewhere keeps a copy of what it reads.
"""

import os
import shutil
from pathlib import Path

KEPT = Path(".snakemake") / "isotrace"
"""From the working folder."""


def kept(file: Path, root: Path) -> str:
    """The path by which rules read ``file`` of the workflow at ``root``: from there, or of a copy kept up to date."""
    if Path.cwd() == root:
        return str(file.relative_to(root))
    copy = KEPT / file.name
    content = file.read_bytes()
    if not copy.is_file() or copy.read_bytes() != content:
        copy.parent.mkdir(parents=True, exist_ok=True)
        attempt = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.copyfile(file, attempt)
        attempt.replace(copy)
    return str(copy)
