"""`isotrace check`: the rows of the card in the terminal, and an exit code for a team's CI."""

from pathlib import Path

from isotrace.card.made import Card, card
from isotrace.card.scores import read_scores
from isotrace.card.words import SAID, limits, when, where, with_interval
from isotrace.errors import ConfigError, DataError
from isotrace.finished import finished
from isotrace.params import CARD_TABLES, Params
from isotrace.study import Study


def check(study: Study, configfile: Path, model: str | None) -> int:
    """Print what the cards say of one model or of all; 1 where any is at alarm, else 0.

    DataError where a model has nothing that could be judged: a check that sees nothing must not pass.
    """
    wanted = list(study.models) if model is None else _named(study, model)
    tables, _ = finished(study, CARD_TABLES, configfile)
    how = Params(study).card()
    cards = []
    for name in wanted:
        scores = read_scores(study.scores[name]) if name in study.scores else None
        cards.append(card(tables, name, scores, how))
    print("\n\n".join("\n".join(lines(one)) for one in cards))
    blind = [one.model for one in cards if one.verdict == "unknown"]
    if blind:
        raise DataError(f"check: nothing of {', '.join(blind)} could be judged; the reasons stand above")
    return int(any(one.verdict == "alarm" for one in cards))


def _named(study: Study, model: str) -> list[str]:
    """The model of that name, or the runs of the group of that name."""
    runs = [run for run, group in study.groups.items() if group == model] or [model]
    if not set(runs) <= set(study.models):
        raise ConfigError(f"check --model: {model!r} is not among the models {', '.join(study.models)}")
    return runs


def lines(found: Card) -> list[str]:
    """One line a measure with what follows from it, then causes and what to look at."""
    said = [f"{found.model}: {found.verdict} ({SAID[found.verdict].lower()})"]
    for f in found.findings:
        value = with_interval(f.value, f.lo, f.hi) if f.worst is not None else ""
        told = " ".join(part for part in (value, where(f), f"({limits(f)})") if part)
        said.append(f"  {f.verdict:<8}{f.measure.title}: {told}")
        said += [f"          {text}" for text in when(f)]
    if found.place is not None and found.beyond:
        said.append(f"  causes, at {found.place.site}, step {found.place.step:,}:")
        said += [f"          {c.name}: {c.answer}; {c.evidence}" for c in found.causes]
    said += [f"  look at {look} ({what})" for what, look in found.next()] if found.beyond else []
    return said
