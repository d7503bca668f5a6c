"""SHA-256 of a file, as manifests, locks and series files hold it."""

import hashlib
from pathlib import Path


def file_sha256(path: Path) -> str:
    """Hex digits of a file's bytes, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
