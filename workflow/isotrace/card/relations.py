"""Whether a measure moves with held-out loss, or with a score of the user's own, over the checkpoints of this run.
Spearman 1904 with the intervals of the tests over training; no p-value, for there is one run."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from isotrace.card.findings import Finding
from isotrace.card.readings import How, Tables, of_activations, over_buckets
from isotrace.dynamics.associations import in_run
from isotrace.dynamics.rows import WITHIN_RUN, Family
from isotrace.dynamics.series import Series

LOSS = "held-out loss"


@dataclass(frozen=True)
class Relation:
    """Rank correlation over n checkpoints of a measure with ``against``; ``note``: why a number is missing."""

    title: str
    against: str
    rho: float
    lo: float
    hi: float
    n: int
    note: str


def _series(model: str, name: str, frame: pd.DataFrame) -> Series:
    """Values at checkpoints with a value; of what has no error of its own, lo and hi are the value."""
    frame = frame[frame["value"].notna()].sort_values("step")
    value, lo, hi = (frame[c].to_numpy(float) for c in ("value", "lo", "hi"))
    return Series(model, name, "all", frame["step"].to_numpy(int), np.full(len(frame), ""), value, lo, hi)


def against(tables: Tables, model: str, scores: pd.DataFrame | None) -> tuple[dict[str, Series], list[str]]:
    """What measures are set against: held-out loss and each metric of the scores; and what is missing of them."""
    found: dict[str, Series] = {}
    notes = []
    loss = of_activations(tables, model, "loss")
    frame = over_buckets(loss) if len(loss) else loss
    if frame.empty or frame["value"].isna().all():
        notes.append("no held-out loss: geometry.metrics does not name loss, or there is none of this model")
    else:
        found[LOSS] = _series(model, LOSS, frame.drop_duplicates("checkpoint"))
    if scores is not None:
        steps = sorted(set(of_model_steps(tables, model)))
        for name in (c for c in scores.columns if c != "step"):
            column = scores[["step", name]].rename(columns={name: "value"}).dropna()
            column = column[column["step"].isin(steps)]
            found[str(name)] = _series(model, str(name), column.assign(lo=column["value"], hi=column["value"]))
            absent = [step for step in steps if step not in set(column["step"])]
            if absent:
                notes.append(f"{name}: no score at step {_listed(absent)}")
        unknown = sorted(set(scores["step"]) - set(steps))
        if unknown:
            notes.append(f"scores at steps of no checkpoint, left out: {_listed(unknown)}")
    return found, notes


def of_model_steps(tables: Tables, model: str) -> list[int]:
    """The steps of a model's checkpoints, those without a number among them."""
    frames = [f for name, f in tables.items() if name in ("geometry", "isotropy", "attention_intervals")]
    return [int(s) for f in frames for s in f.loc[f["model"] == model, "step"].dropna().unique()]


def _listed(steps: list[int]) -> str:
    return ", ".join(map(str, steps))


def relations(found: list[Finding], others: Mapping[str, Series], model: str, how: How) -> list[Relation]:
    """Every measure that has numbers against every one of ``others``."""
    rows = []
    for finding in found:
        if finding.worst is None:
            continue
        mine = _series(model, finding.measure.name, finding.worst)
        rows += [_relation(finding.measure.title, mine, name, other, how) for name, other in others.items()]
    return rows


def _relation(title: str, mine: Series, name: str, other: Series, how: How) -> Relation:
    if max(len(mine.step) - len(set(mine.step)), len(other.step) - len(set(other.step))):
        return Relation(title, name, np.nan, np.nan, np.nan, 0, "several models at one step: no course of training")
    family = Family(
        f"card {name}", mine.site, False, [mine], how["seed"], how["resamples"], how["confidence"], {mine.model: ""}
    )
    row = in_run(family, mine, other, 0)
    note = row.note.removeprefix(WITHIN_RUN).removeprefix("; ")
    return Relation(title, name, row.effect, row.lo, row.hi, row.n, note)
