"""Tidy tables: checked, typed, sorted, joined with the series they belong to, written to the same bytes every time.

The layout is the public contract in ``schema`` (our choice).
"""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrace.errors import DataError
from isotrace.schema import JOINED, Column, Kind, Scope, columns

_DTYPES: dict[Kind, str] = {"text": "str", "integer": "Int64", "real": "float64"}
_SORT_FIRST = ("study", "model", "seed", "step", "checkpoint", "layer")


def layer_of(site: str, sites: Sequence[str]) -> int:
    """Depth of a site: embed -1, block.i i, final_norm the number of blocks (one above the deepest in ``sites``)."""
    depths = [int(s.split(".")[1]) for s in sites if re.fullmatch(r"block\.\d+", s)]
    if site == "embed":
        return -1
    if site == "final_norm":
        return max(depths, default=-1) + 1
    if not re.fullmatch(r"block\.\d+", site):
        raise DataError(f"site {site!r} is none of embed, block.I, final_norm")
    return int(site.split(".")[1])


def with_layers(frame: pd.DataFrame, sites: Sequence[str]) -> pd.DataFrame:
    """The frame with ``layer`` computed from its ``site``; ``sites`` are all sites of the model."""
    layers = {site: layer_of(site, sites) for site in frame["site"].unique()}
    return frame.assign(layer=frame["site"].map(layers))


def natural(text: str) -> str:
    """A key by which b2 sorts before b10."""
    return re.sub(r"\d+", lambda digits: digits.group().zfill(12), text)


def _typed(frame: pd.DataFrame, table: tuple[Column, ...], *, stage: str) -> pd.DataFrame:
    names = [c.name for c in table]
    missing, extra = [n for n in names if n not in frame], [n for n in frame if n not in names]
    if missing or extra:
        raise DataError(f"table {stage}: missing columns {missing}, columns that do not belong {extra}")
    typed: dict[str, pd.Series] = {}
    for column in table:
        values = frame[column.name]
        if column.kind == "text":
            values = values.astype(object).where(values.notna(), "")
        try:
            typed[column.name] = values.astype(_DTYPES[column.kind])  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise DataError(f"table {stage}: column {column.name} is not {column.kind} ({error})") from None
    return pd.DataFrame(typed, columns=names)


def _check_reasons(frame: pd.DataFrame, table: tuple[Column, ...], *, stage: str) -> None:
    explanation = next((n for n in ("reason", "note") if n in frame), None)
    numbers = [c.name for c in table if c.kind != "text" and not c.nullable]
    empty = frame[numbers].isna()
    silent = empty.any(axis=1) & (frame[explanation] == "" if explanation else True)
    if silent.any():
        row = int(np.flatnonzero(silent.to_numpy())[0])
        names = [n for n in numbers if empty[n].iloc[row]]
        raise DataError(f"table {stage}: row {row} has no value in {names} and no {explanation or 'way to say why'}")
    if explanation == "reason" and ((frame["reason"] != "") & ~empty.any(axis=1)).any():
        raise DataError(f"table {stage}: a row gives a reason although nothing is missing from it")


def _sorted(frame: pd.DataFrame, table: tuple[Column, ...], *, stage: str) -> pd.DataFrame:
    keys = [c.name for c in table if c.key]
    doubled = frame.duplicated(keys)
    if doubled.any():
        raise DataError(f"table {stage}: two rows for {frame.loc[doubled, keys].iloc[0].to_dict()}")
    first = [n for n in _SORT_FIRST if n in frame]
    order = [*first, *(k for k in keys if k not in first)]
    ranked = {n: frame[n] if frame[n].dtype != "str" else frame[n].map(natural) for n in order}
    position = pd.DataFrame(ranked).sort_values(order, kind="stable", na_position="first").index
    return frame.loc[position].reset_index(drop=True)


def finish(stage: str, frame: pd.DataFrame, *, scope: Scope = "study") -> pd.DataFrame:
    """The frame as the contract has it: column order, types, natural order of rows.

    Integers without gaps are int64, with gaps Int64. DataError for missing or extra columns, wrong types, two rows
    with one key, a number that is missing without a reason, or a reason where nothing is missing.
    """
    table = columns(stage, scope=scope)
    typed = _typed(frame.reset_index(drop=True), table, stage=stage)
    _check_reasons(typed, table, stage=stage)
    ordered = _sorted(typed, table, stage=stage)
    whole = [c.name for c in table if c.kind == "integer" and ordered[c.name].notna().all()]
    return ordered.astype(dict.fromkeys(whole, "int64"))


def tombstone(stage: str, reason: str, **keys: str | int) -> pd.DataFrame:
    """One row that says why a checkpoint, or a bucket of it, has no results; columns of scope ``checkpoint``.

    ``keys`` are what is known (``bucket="b3"``); other texts are empty, other numbers missing.
    """
    if not reason:
        raise DataError(f"table {stage}: a tombstone needs a reason")
    table = columns(stage, scope="checkpoint")
    known: dict[str, Any] = {**keys, "reason": reason}
    empty: dict[Kind, Any] = {"text": "", "integer": pd.NA, "real": np.nan}
    return _typed(pd.DataFrame([{c.name: known.get(c.name, empty[c.kind]) for c in table}]), table, stage=stage)


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
    table = columns(stage)
    names = [c.name for c in table]
    unused = [n for n in JOINED if n not in names]
    typed = [_typed(part.drop(columns=unused, errors="ignore"), table, stage=stage) for part in parts]
    empty = _typed(pd.DataFrame({n: [] for n in names}), table, stage=stage)
    return finish(stage, pd.concat(typed, ignore_index=True) if typed else empty)


def lock_status(lock: Mapping[str, Any]) -> dict[str, str]:
    """Status (ok, broken, duplicate) of every checkpoint of a series, by id."""
    return {c["id"]: c["status"] for c in lock["checkpoints"]}


def duplicates(audit: pd.DataFrame) -> set[tuple[str, str]]:
    """(model, checkpoint) whose weights equal an earlier checkpoint's: they are no independent observation."""
    found = audit[audit["finding"] == "duplicate"]
    return set(zip(found["model"], found["checkpoint"], strict=True))


def audit_table(findings: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """What the audit found in every series, one row a finding (``checkpoints.lock.findings`` of each lock)."""
    names = [c.name for c in columns("audit")]
    return finish("audit", pd.DataFrame(list(findings), columns=names))


def _arrow(frame: pd.DataFrame, table: tuple[Column, ...]) -> Any:
    import pyarrow as pa

    types = {"text": pa.string(), "integer": pa.int64(), "real": pa.float64()}
    fields = [pa.field(c.name, types[c.kind], metadata={"unit": c.unit, "key": str(c.key).lower()}) for c in table]
    # NaN stays NaN and is not turned into null: a reader in another language sees a number that is missing.
    arrays = [pa.array(frame[c.name], type=types[c.kind], from_pandas=c.kind != "real") for c in table]
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _beside(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def write(path: str | Path, frame: pd.DataFrame, stage: str, *, scope: Scope = "study") -> None:
    """Finish the frame and write it as Parquet: atomically, the same bytes for the same rows."""
    import pyarrow.parquet as pq

    target = Path(path)
    temporary = _beside(target)
    pq.write_table(_arrow(finish(stage, frame, scope=scope), columns(stage, scope=scope)), temporary)
    os.replace(temporary, target)


def write_csv(path: str | Path, frame: pd.DataFrame, stage: str, *, scope: Scope = "study") -> None:
    """Finish the frame and write it as CSV: shortest decimals that read back exactly, missing numbers as NaN."""
    target = Path(path)
    temporary = _beside(target)
    finished = finish(stage, frame, scope=scope)
    reals = [c.name for c in columns(stage, scope=scope) if c.kind == "real"]
    numbers = {n: finished[n].map(lambda x: repr(float(x)).replace("nan", "NaN")) for n in reals}
    finished.assign(**numbers).to_csv(temporary, index=False, na_rep="NaN", lineterminator="\n")
    os.replace(temporary, target)


def read(path: str | Path) -> pd.DataFrame:
    """A table written by ``write``. DataError naming the file when it is not one."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        # Read through a file handle: a path such as bucket=b0/x.parquet would otherwise gain partition columns.
        with Path(path).open("rb") as file:
            table = pq.read_table(file)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"{path} is not a readable table ({error}); delete it and rerun") from None
    values: dict[str, pd.Series] = {}
    for field in table.schema:
        column = table[field.name]
        whole = "Int64" if column.null_count else "int64"
        dtype = {pa.string(): "str", pa.int64(): whole}.get(field.type, "float64")
        values[field.name] = pd.Series(column.to_pylist(), dtype=dtype)
    return pd.DataFrame(values)
