"""What two studies differ in: main numbers, verdicts of claims, config keys, and what makes numbers incomparable.

Intervals of differences are made of both intervals by MOVER (Zou and Donner 2008), as if the two erred independently.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp, isfinite, log, nan, sqrt
from typing import Any

import pandas as pd

from isotrace.comparing.sides import Side
from isotrace.main_numbers import LABELS, RATIOS, Number, main_numbers

IGNORED = ("study", "pathvars", "limits", "execution", "figures", "card", "scores", "locked")
"""Blocks of the config that change no number."""
CLAIM = ["claim", "model"]


@dataclass(frozen=True)
class Pair:
    """One number in both studies; ``change`` is their quotient (of multiples) or difference, second to first."""

    model: str
    what: str
    first: Number
    second: Number
    change: float
    lo: float
    hi: float
    quotient: bool

    @property
    def apart(self) -> bool | None:
        """Whether the interval of the change leaves out no change; None where there is no interval."""
        none = 1.0 if self.quotient else 0.0
        return None if not isfinite(self.lo + self.hi) else not self.lo <= none <= self.hi


def mover(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Difference b - a and its interval, each of ``a`` and ``b`` (estimate, lower, upper); NaN limits stay NaN."""
    change = b[0] - a[0]
    down = sqrt((b[0] - b[1]) ** 2 + (a[2] - a[0]) ** 2)
    up = sqrt((b[2] - b[0]) ** 2 + (a[0] - a[1]) ** 2)
    return change, change - down, change + up


def pairs(first: Side, second: Side, models: Mapping[str, str], rank: int, method: str) -> list[Pair]:
    """Every main number that both have, model by model."""
    sides = [main_numbers(side.tables, rank=rank, method=method) for side in (first, second)]
    found = []
    for mine, theirs in models.items():
        others = {_place(n): n for n in sides[1] if _model(n) == theirs}
        for number in (n for n in sides[0] if _model(n) == mine):
            other = others.get(_place(number))
            if other is not None:
                found.append(_pair(mine if mine == theirs else f"{mine}, {theirs}", number, other))
    return found


def _model(number: Number) -> str:
    return number.run.partition(" ")[0]


def _place(number: Number) -> tuple[str, str, str]:
    """What tells the numbers of one model apart: which it is, of what, and the seed where there are several."""
    return number.key, number.of, number.run.partition(" ")[2]


def _pair(model: str, first: Number, second: Number) -> Pair:
    what = LABELS[first.key] + (f" ({first.of})" if first.of else "")
    triples = [(n.value, n.lo, n.hi) for n in (first, second)]
    quotient = first.key in RATIOS
    if quotient:
        logs = [[log(x) if x > 0 else nan for x in triple] for triple in triples]
        change, lo, hi = map(exp, mover(*logs))
    else:
        change, lo, hi = mover(*triples)
    if first.key == "isotropy_p":
        change = lo = hi = nan  # a difference of two p is none of effects
    return Pair(model, what, first, second, change, lo, hi, quotient)


def verdicts(first: Side, second: Side, models: Mapping[str, str]) -> pd.DataFrame:
    """Claims whose verdict differs, with both estimates; claims of one study alone have an empty verdict."""
    held = ("verdict", "estimate", "lo", "hi")
    if "claims" not in first.tables or "claims" not in second.tables:
        return pd.DataFrame(columns=[*CLAIM, *(f"{name}_{end}" for end in (1, 2) for name in held)])
    mine = first.tables["claims"][[*CLAIM, *held]].replace({"model": dict(models)})
    both = mine.merge(second.tables["claims"][[*CLAIM, *held]], on=CLAIM, how="outer", suffixes=("_1", "_2"))
    # A claim on a pool of models (clm, all) is of both studies; one on a model that is left out is of neither.
    alone = {*first.models, *second.models} - {*models, *models.values()}
    both = both[~both["model"].isin(alone)].fillna({"verdict_1": "", "verdict_2": ""})
    return both[both["verdict_1"] != both["verdict_2"]].reset_index(drop=True)


def keys(first: Side, second: Side) -> list[tuple[str, Any, Any]]:
    """Config keys that change numbers and differ; a key that one has not is None there."""
    names = [*first.keys, *(key for key in second.keys if key not in first.keys)]
    told = ((key, first.keys.get(key), second.keys.get(key)) for key in names)
    return [row for row in told if row[1] != row[2] and row[0].partition(".")[0] not in IGNORED]


def warnings(first: Side, second: Side, models: Mapping[str, str]) -> Iterator[str]:
    """Why numbers of the two cannot be set against each other, a line each."""
    for mine, theirs in models.items():
        for stage, what in (("tokens", "text or tokenizer"), ("sample", "sampled positions")):
            both = [side.manifest(stage, name) for side, name in ((first, mine), (second, theirs))]
            if None in both:
                continue
            if both[0]["files"] != both[1]["files"]:  # type: ignore[index]
                yield f"{mine}: {what} differ; numbers are of different tokens"
                break
        yield from _rows(first, second, mine, theirs)
    if first.rank is not None and second.rank is not None and first.rank != second.rank:
        yield f"dynamics.rank: {first.rank} and {second.rank}; claims and figures of the two are of different ranks"
    if first.keys and second.keys and first.method != second.method:
        yield f"dynamics.method: {first.method} and {second.method}; claims are of different bases"


def _rows(first: Side, second: Side, mine: str, theirs: str) -> Iterator[str]:
    """Differences that the tables show: rows, buckets, sites, checkpoints."""
    if "energy" not in first.tables or "energy" not in second.tables:
        return
    frames = [s.tables["energy"][s.tables["energy"]["model"] == m] for s, m in ((first, mine), (second, theirs))]
    for column, what in (("n_tokens", "rows a bucket"), ("bucket", "buckets"), ("site", "sites")):
        held = [sorted(set(frame[column].dropna()) - {""}) for frame in frames]
        if held[0] != held[1]:
            yield f"{mine}: {what} differ ({_few(held[0])}; {_few(held[1])})"
    steps = [sorted(set(frame["step"].dropna())) for frame in frames]
    if steps[0] != steps[1]:
        yield f"{mine}: checkpoints differ ({_few(steps[0])}; {_few(steps[1])}); peaks are over different steps"


def _few(values: Sequence[Any]) -> str:
    told = [f"{value:g}" if isinstance(value, float) else str(value) for value in values]
    return ", ".join(told if len(told) <= 6 else [*told[:5], f"… {told[-1]}"])
