"""Two studies side by side as text for a terminal, or their numbers as a table (our choice of words)."""

from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

import pandas as pd

from isotrace.comparing.differences import Pair, keys, pairs, verdicts, warnings
from isotrace.comparing.sides import Side
from isotrace.errors import ConfigError
from isotrace.main_numbers import Number


def matched(first: Side, second: Side, named: Mapping[str, str]) -> dict[str, str]:
    """Model of the first study -> model of the second: those named, else those of one name, else the only ones.

    ConfigError for a name that its study does not have, and where nothing matches.
    """
    for mine, theirs in named.items():
        for side, name in ((first, mine), (second, theirs)):
            if name not in side.models:
                raise ConfigError(f"compare --model: {side.name} has no {name}; there are {', '.join(side.models)}")
    same = {name: name for name in first.models if name in second.models}
    found = dict(named) or same
    if not found and len(first.models) == len(second.models) == 1:
        found = {first.models[0]: second.models[0]}
    if not found:
        raise ConfigError(
            f"compare: no model has the same name in both ({', '.join(first.models)}; {', '.join(second.models)}); "
            f"give --model FIRST=SECOND"
        )
    return found


def common_rank(first: Side, second: Side, asked: int | None) -> int:
    """The rank of the numbers: that asked for, else the first study's if both have it, else the largest of both.

    ConfigError where the two have no rank in common.
    """
    held = [_ranks(side) for side in (first, second)]
    both = held[0] & held[1] if all(held) else held[0] | held[1]
    if asked is not None and asked not in both:
        raise ConfigError(f"compare --rank: {asked} is not in both; there are {sorted(both)}")
    if not both:
        raise ConfigError(f"compare: no rank in common ({sorted(held[0])}; {sorted(held[1])}); run one of them again")
    wanted = [rank for rank in (asked, first.rank, second.rank) if rank in both]
    return next((rank for rank in wanted if rank is not None), max(both))


def _ranks(side: Side) -> set[int]:
    return set(side.tables["energy"]["rank"].dropna().astype(int)) if "energy" in side.tables else set()


def text(first: Side, second: Side, models: Mapping[str, str], rank: int, method: str) -> str:
    """Everything: warnings first, then numbers, verdicts, config keys."""
    found = pairs(first, second, models, rank, method)
    lines = [f"{first.name} ({first.results}) and {second.name} ({second.results}), rank {rank}, {method}"]
    lines += [f"warning: {line}" for line in warnings(first, second, models)]
    lines += [f"left out: {line}" for line in _unmatched(first, second, models)]
    names = [side.name if first.name != second.name else str(side.results) for side in (first, second)]
    lines += ["", *aligned([["model", "number", *names, "change", "apart"], *map(_row, found)])]
    lines += ["Change: times where marked x, else difference, second to first; apart: its interval leaves out none."]
    lines += [
        "Intervals are over sequences within a run, as if the two erred independently: too wide on the same text.",
        "",
    ]
    lines += [*_verdicts(verdicts(first, second, models)), "", *_keys(first, second)]
    return "\n".join(lines)


def frame(first: Side, second: Side, models: Mapping[str, str], rank: int, method: str) -> pd.DataFrame:
    """The numbers as a table: a row each, with both values, intervals, sites and steps."""
    rows = []
    for pair in pairs(first, second, models, rank, method):
        row: dict[str, Any] = {
            "model": pair.model,
            "number": pair.first.key,
            "of": pair.first.of,
            "rank": pair.first.rank or None,
        }
        for end, n in (("1", pair.first), ("2", pair.second)):
            row |= {f"value_{end}": n.value, f"lo_{end}": n.lo, f"hi_{end}": n.hi, f"site_{end}": n.site}
            row |= {f"step_{end}": n.step}
        kind = "quotient" if pair.quotient else "difference"
        rows.append(row | {"change": pair.change, "change_lo": pair.lo, "change_hi": pair.hi, "kind": kind})
    return pd.DataFrame(rows)


def _unmatched(first: Side, second: Side, models: Mapping[str, str]) -> Iterator[str]:
    for side, taken in ((first, set(models)), (second, set(models.values()))):
        alone = [name for name in side.models if name not in taken]
        if alone:
            yield f"{', '.join(alone)}, of {side.name} alone"


def _row(pair: Pair) -> list[str]:
    change = _span(pair.change, pair.lo, pair.hi, "x" if pair.quotient else "+")
    apart = {True: "yes", False: "no", None: ""}[pair.apart]
    return [pair.model, pair.what, _number(pair.first), _number(pair.second), change, apart]


def _number(number: Number) -> str:
    at = f" at {number.site}" + (f" {number.step:,}" if number.step is not None else "") if number.site else ""
    return _span(number.value, number.lo, number.hi) + at


def _span(value: float, lo: float, hi: float, sign: str = "") -> str:
    """A value with its interval, three significant digits; ``sign`` before it: x of quotients, + of differences."""
    if not isfinite(value):
        return ""
    before = "x" if sign == "x" else ""
    plus = "+" if sign == "+" else ""
    limits = f" [{before}{lo:{plus}.3g}, {before}{hi:{plus}.3g}]" if isfinite(lo + hi) else ""
    return f"{before}{value:{plus}.3g}{limits}"


def _verdicts(changed: pd.DataFrame) -> list[str]:
    if changed.empty:
        return ["No claim has another verdict."]
    cells = [["claim", "model", "first", "second"]]
    cells += [[row["claim"], row["model"], _verdict(row, "1"), _verdict(row, "2")] for _, row in changed.iterrows()]
    return [f"Claims with another verdict: {len(changed)}", *aligned(cells)]


def _verdict(row: pd.Series, end: str) -> str:
    if not row[f"verdict_{end}"]:
        return "not declared"
    return f"{row[f'verdict_{end}']} {_span(row[f'estimate_{end}'], row[f'lo_{end}'], row[f'hi_{end}'])}".rstrip()


def _keys(first: Side, second: Side) -> list[str]:
    if not first.keys or not second.keys:
        return ["Config keys: give the config of both to see which differ."]
    differing = keys(first, second)
    if not differing:
        return ["No config key that changes a number differs."]
    return ["Config keys that differ", *aligned([[k, *map(_value, values)] for k, *values in differing])]


def _value(value: object) -> str:
    told = "-" if value is None else str(value)
    return told if len(told) <= 60 else f"{told[:59]}…"


def aligned(cells: list[list[str]]) -> list[str]:
    """Lines of columns that are flush left."""
    widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in cells]
