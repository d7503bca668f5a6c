"""Figures from tables alone, where nothing of the workflow is installed: a laptop, another venue.
Our own choice; needs matplotlib, numpy, pandas and pyarrow, and reads no config, model or store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrace.errors import ConfigError, DataError
from isotrace.figure_tables import FIGURE_TABLES, OPTIONAL
from isotrace.figures.frames import one_a_group
from isotrace.gather import with_status
from isotrace.paper.drawing import KINDS, draw
from isotrace.tables import read

DRAWING = "drawing.json"


def redraw(
    tables: Path,
    out: Path,
    *,
    names: Sequence[str] = (),
    drawing: Path | None = None,
    captions: Path | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Draw figures from the Parquet files of ``tables`` into ``out``; their PDFs.

    names: which figures, else all that these tables suffice for. drawing: the study's drawing.json, with which files
    come out as the workflow's own, byte for byte; by default that of ``tables``/../paper. captions: a folder of
    figures' captions ({figure}.rst) to begin with. options: over those of the study, for every figure (``venue``,
    ``rank``, ``method``). ConfigError for an unknown figure; DataError where a table is missing.
    """
    study = _drawing(drawing or tables.parent / "paper" / DRAWING, wanted=drawing is not None)
    chosen = list(names) or [n for n in study["options"] or FIGURE_TABLES if not _lacking(n, tables)]
    if not chosen:
        raise DataError(f"{tables}: no tables of a study; give the folder that holds energy.parquet and the others")
    made = []
    for name in chosen:
        _check(name, tables)
        frames = {t: read(tables / f"{t}.parquet") for t in FIGURE_TABLES[name] if (tables / f"{t}.parquet").is_file()}
        marked = {t: with_status(frame, study["locks"]) for t, frame in frames.items()}
        files = {kind: out / f"{name}.{kind}" for kind in KINDS}
        known = {**study["options"].get(name, {}), **(options or {})}
        draw(name, one_a_group(marked, study["groups"]), known, text=_text(captions, name), files=files)
        made.append(files["pdf"])
    return made


def _drawing(path: Path, *, wanted: bool) -> dict[str, Any]:
    """What the study's own figures were drawn with; nothing where no such file is."""
    if not path.is_file():
        if wanted:
            raise DataError(f"{path}: not there; it is written by the target `paper`")
        return {"groups": {}, "options": {}, "locks": []}
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path}: not JSON ({error}); it is written by the target `paper`") from None
    return found


def _lacking(name: str, tables: Path) -> list[str]:
    return [t for t in FIGURE_TABLES[name] if t not in OPTIONAL and not (tables / f"{t}.parquet").is_file()]


def _check(name: str, tables: Path) -> None:
    if name not in FIGURE_TABLES:
        raise ConfigError(f"figures: no figure is called {name!r}; there are {', '.join(sorted(FIGURE_TABLES))}")
    lost = _lacking(name, tables)
    if lost:
        raise DataError(f"figure {name}: {tables} lacks {', '.join(f'{t}.parquet' for t in lost)}; copy it there")


def _text(captions: Path | None, name: str) -> str:
    """What a caption begins with: that of the study's own one where its folder is given, else the figure's name."""
    path = captions / f"{name}.rst" if captions else None
    if path is None or not path.is_file():
        return f"**{name.replace('_', ' ').capitalize()}.**"
    return path.read_text(encoding="utf-8").partition("\n\n")[0]
