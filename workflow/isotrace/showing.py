"""A table of a study with filters, or where a figure is and what it shows: ``isotrace show`` (our choice).

Reads finished files alone, so it works beside a copy of ``tables/`` and ``figures/`` as well.
"""

import operator
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace import tables
from isotrace.errors import ConfigError, DataError
from isotrace.input_params import ROOT
from isotrace.schema import SCHEMAS

COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
}
_FILTER = re.compile(r"\s*(\w+)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*")
_CELL = 60
"""Characters of a cell of text; CSV holds everything."""
CAPTIONS = ROOT / "workflow" / "report"


def listing(results: Path) -> list[str]:
    """A line a table and a figure that there is; DataError where there is neither."""
    found = [f"tables/{path.stem}: {_size(path)}" for path in sorted((results / "tables").glob("*.parquet"))]
    found += [f"figures/{path.stem}" for path in sorted((results / "figures").glob("*.pdf"))]
    if not found:
        raise DataError(f"{results}: no tables and no figures; run the study first, or name its folder with --results")
    return found


def _size(path: Path) -> str:
    frame = tables.read(path)
    return f"{len(frame):,} rows of {len(frame.columns)} columns"


def kind_of(results: Path, name: str) -> tuple[str, str]:
    """``tables`` or ``figures``, and the bare name; a name of both is a table unless its folder is named.

    DataError that lists what there is, where there is no such thing.
    """
    folder, _, bare = name.rpartition("/")
    endings = {"tables": ".parquet", "figures": ".pdf"}
    for kind, ending in endings.items():
        if folder in ("", kind) and (results / kind / f"{bare}{ending}").is_file():
            return kind, bare
    there = ", ".join(line.partition(":")[0] for line in listing(results))
    raise DataError(f"show: {results} holds no {name}; there are {there}")


def rows(frame: pd.DataFrame, where: Sequence[str], columns: Sequence[str]) -> pd.DataFrame:
    """The rows that pass every filter (``site=embed,final_norm``, ``step>=64``), and the columns named; all if none.

    ConfigError for a filter that is none, and for a column that the table does not have.
    """
    for text in where:
        match = _FILTER.fullmatch(text)
        if match is None:
            raise ConfigError(f"show --where: {text!r} is not COLUMN=VALUE; also !=, <, <=, > and >= are known")
        column, sign, wanted = match.groups()
        _known(frame, "--where", [column])
        frame = frame[_passing(frame[column], sign, wanted, text)]
    _known(frame, "--columns", columns)
    return frame[list(columns)] if columns else frame


def _known(frame: pd.DataFrame, flag: str, columns: Sequence[str]) -> None:
    unknown = [column for column in columns if column not in frame]
    if unknown:
        raise ConfigError(f"show {flag}: no column {unknown[0]!r}; there are {', '.join(map(str, frame))}")


def _passing(column: pd.Series, sign: str, wanted: str, text: str) -> Any:
    """Which rows pass; several values, divided by commas, are any of them."""
    values: list[Any] = wanted.split(",") if sign in ("=", "!=") else [wanted]
    if pd.api.types.is_numeric_dtype(column):
        try:
            values = [float(value) for value in values]
        except ValueError:
            raise ConfigError(f"show --where: {text!r}: {column.name} holds numbers") from None
    if sign == "=":
        return column.isin(values).to_numpy()
    if sign == "!=":
        return ~column.isin(values).to_numpy()
    return COMPARED[sign](column, values[0]).fillna(False).to_numpy(bool)


def text(frame: pd.DataFrame, limit: int) -> str:
    """Aligned columns of at most ``limit`` rows (0: all), columns of nothing and of one value left to the first line.

    Numbers have six significant digits.
    """
    shown = frame.head(limit) if limit else frame
    names = [str(c) for c in shown]
    same = [c for c in names if len(shown) > 1 and shown[c].nunique(dropna=False) == 1]
    same = same if len(same) < len(names) else []
    told = [f"{c}={value}" for c in same if (value := _cell(shown[c].iloc[0]))]
    cells = [[c for c in names if c not in same]]
    cells += [[_cell(value) for value in row] for row in shown[cells[0]].itertuples(index=False)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    lines = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
    more = len(frame) - len(shown)
    return "\n".join(
        [
            *([", ".join(told)] if told else []),
            *lines,
            *([f"and {more:,} more rows; --limit 0 shows all"] if more else []),
        ]
    )


def _cell(value: Any) -> str:
    if value is None or value is pd.NA:
        return ""
    told = f"{value:.6g}" if isinstance(value, float) else str(value)
    return told if len(told) <= _CELL else f"{told[: _CELL - 1]}…"


def about(name: str) -> str:
    """The columns of a table with their units; those that identify a row are marked."""
    if name not in SCHEMAS:
        raise DataError(f"show --about: nothing is known of the columns of {name}")
    cells = [["column", "holds", "unit", "key"]]
    cells += [[c.name, c.kind, c.unit, "key" if c.key else ""] for c in SCHEMAS[name]]
    widths = [max(len(line[i]) for line in cells) for i in range(4)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in cells)


def figure(results: Path, name: str) -> str:
    """The files of a figure and its caption: the one made with it, or else the workflow's own words."""
    stem = results / "figures" / name
    files = [str(stem.with_suffix(end)) for end in (".pdf", ".png", ".csv") if stem.with_suffix(end).is_file()]
    captions = (stem.with_suffix(".rst"), CAPTIONS / f"{name}.rst")
    caption = next((path.read_text(encoding="utf-8") for path in captions if path.is_file()), "")
    return "\n".join([*files, *([" ".join(caption.replace("**", "").split())] if caption else [])])
