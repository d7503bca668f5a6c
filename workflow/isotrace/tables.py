"""Tidy tables: checked, typed, sorted, written to the same bytes every time, read back with the same types.

The layout is the public contract in ``schema`` (our choice).
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrace.errors import DataError
from isotrace.schema import Column, Kind, Scope, columns

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
    """The frame with the table's columns in order and their types (integers nullable), unsorted and unchecked."""
    names = [c.name for c in table]
    missing, extra = [n for n in names if n not in frame], [n for n in frame if n not in names]
    if missing or extra:
        raise DataError(f"table {stage}: missing columns {missing}, columns that do not belong {extra}")
    series: dict[str, pd.Series] = {}
    for column in table:
        values = frame[column.name]
        if column.kind == "text":
            values = values.astype(object).where(values.notna(), "")
        try:
            series[column.name] = values.astype(_DTYPES[column.kind])  # type: ignore[call-overload]
        except (TypeError, ValueError) as error:
            raise DataError(f"table {stage}: column {column.name} is not {column.kind} ({error})") from None
    return pd.DataFrame(series, columns=names)


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
    first = [n for n in _SORT_FIRST if n in frame] if "checkpoint" in frame else []
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
    plain = _typed(frame.reset_index(drop=True), table, stage=stage)
    _check_reasons(plain, table, stage=stage)
    ordered = _sorted(plain, table, stage=stage)
    whole = [c.name for c in table if c.kind == "integer" and ordered[c.name].notna().all()]
    return ordered.astype(dict.fromkeys(whole, "int64"))


def tombstone(stage: str, reason: str, scope: Scope = "checkpoint", /, **keys: str | int) -> pd.DataFrame:
    """One row that says why a checkpoint, or a bucket of it, has no results.

    ``keys`` are what is known (``bucket="b3"``); other texts are empty, other numbers missing.
    """
    if not reason:
        raise DataError(f"table {stage}: a tombstone needs a reason")
    table = columns(stage, scope=scope)
    known: dict[str, Any] = {**keys, "reason": reason}
    empty: dict[Kind, Any] = {"text": "", "integer": pd.NA, "real": np.nan}
    return _typed(pd.DataFrame([{c.name: known.get(c.name, empty[c.kind]) for c in table}]), table, stage=stage)


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
