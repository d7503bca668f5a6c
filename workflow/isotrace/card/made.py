"""A whole card as plain values: everything that the page and the terminal show of one model."""

from dataclasses import dataclass

import pandas as pd

from isotrace.card.causes import Cause, Place, causes, place_of
from isotrace.card.findings import Finding, Verdict, findings, verdict_of
from isotrace.card.readings import How, Tables
from isotrace.card.relations import Relation, against, relations


@dataclass(frozen=True)
class Card:
    """One model's card; ``place`` is where causes were asked for, None where no cloud was measured."""

    model: str
    verdict: Verdict
    findings: list[Finding]
    place: Place | None
    causes: list[Cause]
    relations: list[Relation]
    notes: list[str]

    @property
    def unknown(self) -> list[Finding]:
        """What could not be judged."""
        return [f for f in self.findings if f.verdict == "unknown"]

    @property
    def beyond(self) -> list[Finding]:
        """What is beyond a threshold now, alarms first."""
        return sorted((f for f in self.findings if f.verdict in ("watch", "alarm")), key=lambda f: f.verdict)

    def next(self) -> list[tuple[str, str]]:
        """What to look at next, and for what: of the measures beyond a threshold, then of likely causes."""
        likely = [c for c in self.causes if c.answer == "likely"]
        return [*((f.measure.title, f.measure.look) for f in self.beyond), *((c.name, c.look) for c in likely)]


def card(tables: Tables, model: str, scores: pd.DataFrame | None, how: How) -> Card:
    """The card of a model from the study's tables; a table that is missing makes its rows unknown.

    ``scores``: the user's own, or None. ``how``: thresholds, causes, rank, method, null_space, seed, resamples,
    confidence.
    """
    found = findings(tables, model, how)
    place = place_of(found)
    others, notes = against(tables, model, scores)
    return Card(
        model=model,
        verdict=verdict_of(found),
        findings=found,
        place=place,
        causes=causes(tables, model, found, place, how) if place else [],
        relations=relations(found, others, model, how),
        notes=notes,
    )
