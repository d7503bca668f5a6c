"""One of two studies to be compared, from its config or its results folder alone.

What was read, sampled and computed is taken from sealed manifests and tables, so that no config needs to be believed.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.errors import DataError
from isotrace.results import read_locks, read_tables
from isotrace.study import validated
from isotrace.yamlfile import read_mapping

NEEDED = ("energy", "isotropy", "geometry", "claims")
"""Tables that are compared; of a results folder any may be missing but not all."""


@dataclass(frozen=True)
class Side:
    """One study. keys: its config by dotted key with defaults, empty where only results were given; rank: None then."""

    name: str
    results: Path
    tables: Mapping[str, pd.DataFrame]
    keys: Mapping[str, Any]
    rank: int | None = None
    method: str = "pca"

    @cached_property
    def models(self) -> list[str]:
        """Models in the tables."""
        return sorted({str(m) for frame in self.tables.values() if "model" in frame for m in frame["model"]} - {""})

    def manifest(self, stage: str, model: str) -> dict[str, Any] | None:
        """The manifest of a model's tokens or sample; None where it has none."""
        file = self.results / stage / f"{model}.json"
        if not file.is_file():
            return None
        content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return content


def side(place: Path) -> Side:
    """The study of a config file or results folder; `DataError` or ConfigError, one line, where it is none."""
    study = None if place.is_dir() else validated(read_mapping(place))
    results = place if study is None else study.results
    paths = [results / "tables" / f"{name}.parquet" for name in NEEDED]
    there = [path for path in paths if path.is_file()]
    if not there:
        raise DataError(f"{results}: no tables of a finished study; run it first, or name its config or results folder")
    locks = read_locks(sorted(map(str, (results / "checkpoints").glob("*.lock.json"))))
    tables = read_tables(map(str, there), locks)
    names = sorted({str(s) for frame in tables.values() if "study" in frame for s in frame["study"]})
    if study is not None and names and names != [study.study]:
        raise DataError(f"{results}/tables hold study {', '.join(names)}, not {study.study}; run it again")
    if study is None:
        return Side(", ".join(names) or place.name, results, tables, {})
    keys = dict(flat(study.model_dump(mode="json")))
    return Side(study.study, results, tables, keys, study.dynamics.rank, study.dynamics.method)


def flat(block: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Every value of nested mappings by its dotted key."""
    for name, value in block.items():
        if isinstance(value, Mapping) and value:
            yield from flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
