"""What a study took, by rule: jobs, time and memory, from the benchmark files that Snakemake writes a job.
The summary is our choice. It is the one part of the page that differs between two runs of the same study."""

import csv
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.schema import SCHEMAS

COLUMNS = ("rule", "jobs", "total [s]", "longest [s]", "peak memory [MB]")
OWN = "report"
DRAW = re.compile(r"init(-\d+)?")


def runtime(folder: Path, names: Collection[str]) -> pd.DataFrame:
    """A row a rule, longest total first; the last run of each job counts.

    Files of other studies, which may share the folder, are left out by ``names``, those of `names_of`. A job too short
    to be measured has no memory.
    """
    rows = pd.DataFrame(_jobs(folder, frozenset(names)), columns=["rule", "seconds", "memory"])
    found = rows.groupby("rule", as_index=False).agg(
        jobs=("seconds", "size"), total=("seconds", "sum"), longest=("seconds", "max"), peak=("memory", "max")
    )
    found = found.sort_values(["total", "rule"], ascending=[False, True], ignore_index=True)
    return found.round(2).set_axis(list(COLUMNS), axis=1)


def names_of(config: Mapping[str, Any], groups: Mapping[str, str], locks: Iterable[Mapping[str, Any]]) -> set[str]:
    """Everything of a study that stands in the path of a benchmark file behind the rule."""
    named = {*config["models"], *groups.values(), *config["corpora"], *config["figures"]["names"], *SCHEMAS}
    methods = {*config["bases"]["methods"], *config["bases"]["controls"]}
    return named | methods | {"tokenizer"} | {c["id"] for lock in locks for c in lock["checkpoints"]}


def _jobs(folder: Path, names: frozenset[str]) -> Iterator[tuple[str, float, float]]:
    for path in sorted(folder.rglob("*.tsv")):
        rule, *parts = path.relative_to(folder).with_suffix("").parts
        if rule == OWN or not all(_known(part, names) for part in parts):
            continue
        with path.open(encoding="utf-8", newline="") as stream:
            for row in csv.DictReader(stream, delimiter="\t"):
                yield rule, _number(row["s"]), _number(row["max_rss"])


def _known(part: str, names: frozenset[str]) -> bool:
    """A name of the study, a checkpoint with its bucket behind a dot, or a draw of untrained weights."""
    return part in names or part.rpartition(".")[0] in names or DRAW.fullmatch(part) is not None


def _number(text: str) -> float:
    """Snakemake writes - or NA for what it could not measure."""
    try:
        return float(text)
    except ValueError:
        return float("nan")
