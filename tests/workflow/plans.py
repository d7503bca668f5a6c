"""Rules that many configs would run in one folder, counted: a process a folder, not one a config.

Run as a script: reads {name: config} as JSON, writes {name: {rule: jobs}}, or the refusal of a config as a string.
"""

import json
import sys
from collections import Counter
from pathlib import Path

from isotrace.reruns.graph import graph


def planned(raw: dict[str, object], folder: Path, snakefile: Path) -> dict[str, int] | str:
    try:
        return Counter(job.rule for job in graph(raw, folder, snakefile=snakefile).planned)
    except RuntimeError as refusal:
        return str(refusal)


if __name__ == "__main__":
    at, written_in = map(Path, sys.argv[1:])
    print(json.dumps({name: planned(raw, at, written_in) for name, raw in json.load(sys.stdin).items()}))
