"""Results of single checkpoints set beside the series that they belong to: one table a stage.

Phases by training progress as in Bernas et al. 2026 (early: the first 30 %); the layout is our choice.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrace.errors import DataError
from isotrace.schema import JOINED, columns
from isotrace.tables import finish, read, tombstone


def phase_of(progress: float, *, early: float, late: float) -> str:
    """early up to ``early``, late from ``late``, mid between; both limits are included."""
    if progress <= early:
        return "early"
    return "late" if progress >= late else "mid"


def join_keys(
    frame: pd.DataFrame,
    *,
    checkpoint: str,
    study: str,
    model: str,
    seed: int | None,
    lock: Mapping[str, Any],
    early: float,
    late: float,
) -> pd.DataFrame:
    """A checkpoint's rows with study, model, seed, checkpoint, step, tokens_seen, progress and phase from its series.

    ``lock`` is the series as audited (``results/checkpoints/{model}.lock.json``); DataError when it lacks the
    checkpoint or the length of training.
    """
    entry = next((c for c in lock["checkpoints"] if c["id"] == checkpoint), None)
    if entry is None:
        raise DataError(f"model {model}: checkpoint {checkpoint} is not in its lock file; rerun the audit")
    total = lock.get("total_steps")
    if not total:
        raise DataError(f"model {model}: total_steps is unknown; set it in the config")
    progress = entry["step"] / total
    known = {
        "study": study,
        "model": model,
        "seed": pd.NA if seed is None else seed,
        "checkpoint": checkpoint,
        "step": entry["step"],
        "tokens_seen": np.nan if entry.get("tokens_seen") is None else float(entry["tokens_seen"]),
        "progress": progress,
        "phase": phase_of(progress, early=early, late=late),
    }
    return frame.assign(**{name: known[name] for name in JOINED})


def gather(stage: str, parts: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """One finished table from the joined parts of every checkpoint; of the joined keys only those it has."""
    names = [c.name for c in columns(stage)]
    unused = [n for n in JOINED if n not in names]
    found = list(parts)
    for part in found:
        # A column that one part lacks would come out of the concatenation as a gap, not as an error.
        if set(part.columns) != set(found[0].columns):
            differing = sorted(set(part.columns) ^ set(found[0].columns))
            raise DataError(f"table {stage}: {differing} are not columns of every checkpoint's results; rerun them")
    whole = pd.concat(found, ignore_index=True) if found else pd.DataFrame({n: [] for n in names})
    return finish(stage, whole.drop(columns=unused, errors="ignore"))


def _owner(path: Path, stage: str) -> tuple[str, str, str]:
    """Model, checkpoint and bucket ("" where the stage has none) of ``.../{model}/{checkpoint}[/{bucket}].parquet``."""
    if "bucket" in [c.name for c in columns(stage)]:
        return path.parts[-3], path.parts[-2], path.stem
    return path.parts[-2], path.stem, ""


def stage_table(
    stage: str,
    paths: Iterable[str | Path],
    locks: Iterable[Mapping[str, Any]],
    *,
    study: str,
    seeds: Mapping[str, int | None],
    early: float,
    late: float,
) -> pd.DataFrame:
    """One table of a stage from the files of every checkpoint (and bucket), found by their place in the tree.

    A file without rows becomes one row with the reason that the audit gave, where the table can say a reason.
    """
    by_model = {lock["model"]: lock for lock in locks}
    parts = []
    for path in map(Path, paths):
        model, checkpoint, bucket = _owner(path, stage)
        if model not in by_model:
            raise DataError(f"{path}: model {model} has no lock file; rerun the audit")
        part = read(path)
        if part.empty and "reason" in part:
            known = {c["id"]: c["reason"] for c in by_model[model]["checkpoints"]}
            reason = known.get(checkpoint) or "nothing was captured at this checkpoint"
            part = tombstone(stage, reason, **({"bucket": bucket} if bucket else {}))
        joined = join_keys(
            part,
            checkpoint=checkpoint,
            study=study,
            model=model,
            seed=seeds.get(model),
            lock=by_model[model],
            early=early,
            late=late,
        )
        parts.append(joined)
    return gather(stage, parts)


def series_table(
    stage: str,
    paths: Iterable[str | Path],
    locks: Iterable[Mapping[str, Any]],
    *,
    study: str,
    seeds: Mapping[str, int | None],
    early: float,
    late: float,
) -> pd.DataFrame:
    """One table of a stage that has a file a model, whose rows name their checkpoint, or none ("").

    In ``subspaces``, which follows training, every broken checkpoint is one row with the reason that the audit gave.
    """
    by_model = {lock["model"]: lock for lock in locks}
    parts = []
    for path in map(Path, paths):
        model = path.stem
        lock, seed, rows = by_model[model], seeds.get(model), [read(path)]
        joined = partial(join_keys, study=study, model=model, seed=seed, lock=lock, early=early, late=late)
        if stage == "subspaces":
            broken = [c for c in lock["checkpoints"] if c["status"] == "broken"]
            rows += [tombstone(stage, c["reason"], "model", checkpoint=c["id"]) for c in broken]
        for checkpoint, part in pd.concat(rows, ignore_index=True).groupby("checkpoint"):
            if checkpoint:
                parts.append(joined(part, checkpoint=str(checkpoint)))
            else:
                run: dict[str, Any] = {"study": study, "model": model, "seed": pd.NA if seed is None else seed}
                nowhere: dict[str, Any] = {"step": pd.NA, "tokens_seen": np.nan, "progress": np.nan, "phase": ""}
                parts.append(part.assign(**run, **nowhere))
    return gather(stage, parts)


def drawn_table(
    stage: str,
    paths: Iterable[str | Path],
    _locks: Iterable[Mapping[str, Any]],
    *,
    study: str,
    seeds: Mapping[str, int | None],
    **_phases: float,
) -> pd.DataFrame:
    """One table of a stage that has a file a model and no checkpoints in it."""
    parts = []
    for path in map(Path, paths):
        seed = seeds.get(path.stem)
        run: dict[str, Any] = {"study": study, "model": path.stem, "seed": pd.NA if seed is None else seed}
        parts.append(read(path).assign(**run))
    return gather(stage, parts)


WHOLE_SERIES = {"subspaces": series_table, "components": series_table, "untrained": drawn_table}
"""How stages are gathered that have one file a model; ``stage_table`` gathers all others."""


def lock_status(lock: Mapping[str, Any]) -> dict[str, str]:
    """Status (ok, broken, duplicate) of every checkpoint of a series, by id."""
    return {c["id"]: c["status"] for c in lock["checkpoints"]}


def without_duplicates(frame: pd.DataFrame, locks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The rows of checkpoints whose weights are their own: a copy of another is no independent observation."""
    status = {(lock["model"], name): s for lock in locks for name, s in lock_status(lock).items()}
    if "duplicate" not in status.values():
        return frame
    pairs = zip(frame["model"], frame["checkpoint"], strict=True)
    return frame[[status.get(pair) != "duplicate" for pair in pairs]].reset_index(drop=True)


def with_status(frame: pd.DataFrame, locks: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame with ``status`` (ok, duplicate, broken) of each row's checkpoint, if its rows name one."""
    if "checkpoint" not in frame:
        return frame
    known = {(lock["model"], name): s for lock in locks for name, s in lock_status(lock).items()}
    pairs = zip(frame["model"], frame["checkpoint"], strict=True)
    return frame.assign(status=[known.get(pair, "ok") for pair in pairs])


def audit_table(findings: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """What the audit found in every series, one row a finding (``checkpoints.lock.findings`` of each lock)."""
    names = [c.name for c in columns("audit")]
    return finish("audit", pd.DataFrame(list(findings), columns=names))
