"""The dynamics table: every declared family's tests, adjusted within the family.

Families are declared before the run (our rule); Benjamini and Hochberg 1995 within each.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from isotrace.dynamics import declared as vocabulary
from isotrace.dynamics.associations import correlation
from isotrace.dynamics.battery import BATTERY
from isotrace.dynamics.measures import MEASURES, Tables, cells
from isotrace.dynamics.multiplicity import benjamini_hochberg
from isotrace.dynamics.rows import Family, Row
from isotrace.dynamics.series import Series, build
from isotrace.schema import columns
from isotrace.tables import finish


def defaults(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What a statement reads where it does not say: rank, method and null space of the config."""
    return {name: spec[name] for name in vocabulary.DEFAULTED}


def _series(
    name: str, where: Mapping[str, tuple[Any, ...]], tables: Tables, spec: Mapping[str, Any], apart: str = ""
) -> list[Series]:
    return build(cells(name, tables, where, defaults(spec)), MEASURES[name], apart)


def _label(measure: str, where: Mapping[str, tuple[Any, ...]]) -> str:
    """``energy.ratio of gradient`` and the like: the measure and what tells its rows apart."""
    words = [str(where[c][0]) for c in ("metric", "quantity", "kind", "of", "estimator", "column") if c in where]
    return " of ".join([measure, " ".join(words)]) if words else measure


def _adjusted(rows: list[Row]) -> list[Row]:
    """Rows with adjusted p-values; the note of each says how many of the family had none."""
    p = np.array([row.p_value for row in rows])
    held_out = int(np.isnan(p).sum())
    counted = f"{held_out} of the family's {len(rows)} rows have no p-value and are held out"
    return [
        replace(row, p_adjusted=float(adjusted), note="; ".join(n for n in (row.note, counted) if n))
        for row, adjusted in zip(rows, benjamini_hochberg(p), strict=True)
    ]


def _family_rows(family: vocabulary.Family, tables: Tables, spec: Mapping[str, Any]) -> list[Row]:
    series = _series(family.measure, family.where, tables, spec, family.apart)
    quantity = _label(family.measure, family.where)
    if family.against:
        quantity = f"{quantity} against {_label(*family.against)}"
    ready = Family(
        name=family.name,
        quantity=quantity,
        log=MEASURES[family.measure].log,
        series=series,
        seed=spec["seed"],
        resamples=spec["resamples"],
        confidence=spec["confidence"],
        objective=spec["objectives"],
        runs=spec.get("runs", {}),
    )
    rows: list[Row] = []
    for test in family.tests if series else ():
        if test == "correlation" and family.against:
            rows += correlation(ready, _series(*family.against, tables, spec), family.lag)
        else:
            rows += BATTERY[test](ready)
    return rows


def dynamics_table(tables: Tables, declared: Mapping[str, Any], spec: Mapping[str, Any]) -> pd.DataFrame:
    """Every test of every declared family, columns of the table ``dynamics``.

    ``tables`` by name, duplicate checkpoints left out; ``declared`` the parsed file of families and claims; ``spec``
    holds seed, rank, method, null_space, resamples, confidence, objectives ({model: clm | mlm}) and, where models are
    runs of one group, runs ({model: group}). Rows of unit ``sequence`` are effects within one run without p-values,
    rows of unit ``run`` are tests across runs. A family whose table is missing or empty has no rows. ConfigError for a
    word outside the vocabulary.
    """
    rows: list[Row] = []
    for family in vocabulary.families(declared):
        rows += _adjusted(_family_rows(family, tables, spec))
    names = [c.name for c in columns("dynamics")]
    return finish("dynamics", pd.DataFrame([row.plain() for row in rows], columns=names))
