"""Configs of tests: the shipped smoke study, with changes at dotted keys."""

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
REMOVED = object()


def smoke(edits: dict[str, Any] | None = None) -> dict[str, Any]:
    """``config/smoke.yaml`` as a mapping; ``REMOVED`` as a value takes the key out."""
    raw: dict[str, Any] = yaml.safe_load((ROOT / "config" / "smoke.yaml").read_text())
    for path, value in (edits or {}).items():
        *parents, last = path.split(".")
        block = raw
        for name in parents:
            block = block.setdefault(name, {})
        if value is REMOVED:
            del block[last]
        else:
            block[last] = value
    return raw
