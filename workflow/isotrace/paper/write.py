"""What rule ``paper`` writes: macros, tables, the page that shows them all, and how the figures were drawn.
Our own choice: everything a paper takes lies in one folder beside the figures."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from isotrace.figures.frames import one_a_group
from isotrace.figures.style import width
from isotrace.gather import lock_status
from isotrace.main_numbers import main_numbers
from isotrace.paper.macros import Macro, claim_macros, macro_name, number_macros, render
from isotrace.paper.sample import sample
from isotrace.paper.study_tables import study_tables
from isotrace.paper.tex import escape


def write_paper(
    folder: Path,
    *,
    tables: Mapping[str, pd.DataFrame],
    locks: Sequence[Mapping[str, Any]],
    sentences: Mapping[str, str],
    spec: Mapping[str, Any],
) -> None:
    """Write macros.tex, tables/*.tex, sample.tex and drawing.json into ``folder``.

    ``sentences`` say each claim in words; ``spec`` is the rule's: study, rank, method, groups, the figures' options.
    """
    numbers = main_numbers(tables, rank=spec["rank"], method=spec["method"])
    general = [
        Macro(macro_name("study"), escape(spec["study"]), "name of the study"),
        Macro(macro_name("rank"), str(spec["rank"]), "rank of the tangent subspace"),
    ]
    macros = [*general, *number_macros(numbers), *claim_macros(tables["claims"])]
    options = spec["options"]
    drawn = {name: frame for name, frame in tables.items() if name in ("energy", "isotropy", "geometry")}
    made = study_tables({**tables, **one_a_group(drawn, spec["groups"])}, options, sentences)
    across = max((width(o) for o in options.values()), default=0.0)
    page = sample(study=spec["study"], figures=list(options), tables=made, macros=macros, width=across)
    drawing = {"groups": spec["groups"], "options": options, "locks": [_status(lock) for lock in locks]}
    files = {
        "macros.tex": render(macros, study=spec["study"]),
        "sample.tex": page,
        "drawing.json": json.dumps(drawing, indent=1, sort_keys=True) + "\n",
        **{f"tables/{name}.tex": text for name, text in made.items()},
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def _status(lock: Mapping[str, Any]) -> dict[str, Any]:
    """A lock as far as a figure needs it: which checkpoints copy another or are broken."""
    odd = [{"id": name, "status": status} for name, status in lock_status(lock).items() if status != "ok"]
    return {"model": lock["model"], "checkpoints": odd}
