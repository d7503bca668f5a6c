"""Files of single checkpoints and the tables of a study, between the scripts and ``tables``.

What is written follows the layout in ``schema``; a checkpoint that holds nothing writes an empty file.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace import tables
from isotrace.gather import with_status, without_duplicates
from isotrace.schema import columns
from isotrace.yamlfile import read_mapping


def write_stage(path: str | Path, frame: pd.DataFrame | None, stage: str, sites: Sequence[str] = ()) -> None:
    """One checkpoint's file; ``sites`` are all sites of the model, for their depth; no frame, no rows."""
    if frame is None:
        frame = pd.DataFrame({c.name: [] for c in columns(stage, scope="checkpoint")})
    elif "site" in frame:
        frame = tables.with_layers(frame, sites)
    tables.write(path, frame, stage, scope="checkpoint")


def write_model(path: str | Path, frame: pd.DataFrame, stage: str, sites: Sequence[str]) -> None:
    """One model's file, whose rows name their checkpoint; ``sites`` as in ``write_stage``."""
    tables.write(path, tables.with_layers(frame, sites), stage, scope="model")


def write_table(output: Any, frame: pd.DataFrame, stage: str) -> None:
    """A study's table as Parquet and CSV."""
    tables.write(output.parquet, frame, stage)
    tables.write_csv(output.csv, frame, stage)


def read_locks(paths: Iterable[str]) -> list[dict[str, Any]]:
    """The locks of all models."""
    return [json.loads(Path(path).read_text(encoding="utf-8")) for path in paths]


def read_tables(paths: Iterable[str], locks: Iterable[dict[str, Any]] = ()) -> dict[str, pd.DataFrame]:
    """Tables by name; with locks, without the rows of checkpoints that copy another."""
    known = list(locks)
    frames = {Path(path).stem: tables.read(path) for path in paths}
    return {name: without_duplicates(f, known) if "step" in f and name != "audit" else f for name, f in frames.items()}


def read_marked(paths: Iterable[str], locks: Iterable[dict[str, Any]]) -> dict[str, pd.DataFrame]:
    """Tables by name with every checkpoint's ``status``, for what shows copies and broken ones beside the others."""
    known = list(locks)
    return {Path(path).stem: with_status(tables.read(path), known) for path in paths}


def read_text(paths: Iterable[str]) -> pd.DataFrame:
    """What each model reads, from the manifests of its tokens: corpus, language, tokens and their share."""
    rows = []
    for path in map(Path, paths):
        text = json.loads(path.read_text(encoding="utf-8"))["attributes"]["text"]
        whole = sum(part["n_tokens"] for part in text.values())
        for corpus, part in text.items():
            told = {"language": part["language"] or "not given", "tokens": part["n_tokens"]}
            rows.append({"model": path.stem, "corpus": corpus, **told, "share": part["n_tokens"] / whole})
    return pd.DataFrame(rows)


def read_declared(path: str) -> dict[str, Any]:
    """The declared families and claims; `ConfigError` where the file is no YAML mapping."""
    return read_mapping(path, "families and claims")
