r"""LaTeX macros of a study's main numbers and claims, so that the text of a paper never drifts from its tables.
Our own choice of names: \iso, the run, the number and its basis, digits spelled out, for TeX allows letters only."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from isotrace.main_numbers import LABELS, Number
from isotrace.paper.numbers import interval, number
from isotrace.paper.tex import escape

DIGITS = ("Zero", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")
VERDICTS = ("supported", "contradicted", "undecided")


@dataclass(frozen=True)
class Macro:
    r"""``\{name}`` stands for ``tex``; ``about`` says in words what it is."""

    name: str
    tex: str
    about: str


def macro_name(*parts: str) -> str:
    """A command name from words: letters kept, digits spelled, everything else a new capital; "iso" before it."""
    spelled = [re.sub(r"\d", lambda d: f" {DIGITS[int(d.group())]} ", part) for part in parts]
    words = re.findall(r"[A-Za-z]+", " ".join(spelled))
    return "iso" + "".join(word[0].upper() + word[1:] for word in words)


def unique(stems: Sequence[tuple[str, ...]]) -> list[str]:
    """A name for each of ``stems``; those that would share one end in letters of a digest of their own words."""
    names = [macro_name(*stem) for stem in stems]
    shared = Counter(names)
    return [
        name if shared[name] == 1 else name + _letters("\0".join(stem)) for name, stem in zip(names, stems, strict=True)
    ]


def _letters(text: str) -> str:
    """Five capitals that are the same for the same text on every machine."""
    digest = hashlib.sha256(text.encode()).digest()
    return "".join(chr(ord("A") + byte % 26) for byte in digest[:5])


def number_macros(numbers: Sequence[Number]) -> list[Macro]:
    """Value, interval, site and step of every main number; what a number lacks has no macro."""
    found = []
    stems = unique([(n.run, n.key, n.of if n.key.startswith("energy") else "") for n in numbers])
    for stem, n in zip(stems, numbers, strict=True):
        about = f"{n.run}: {LABELS[n.key]}" + (f" ({n.of})" if n.of else "")
        found.append(Macro(stem, number(n.value).text, about))
        if interval(n.lo, n.hi).text:
            found.append(Macro(f"{stem}Interval", interval(n.lo, n.hi).text, f"{about}, its interval"))
        if n.site:
            found.append(Macro(f"{stem}Site", escape(n.site), f"{about}, where"))
        if n.step is not None:
            found.append(Macro(f"{stem}Step", f"{n.step:,}", f"{about}, at which step"))
    return found


def claim_macros(claims: pd.DataFrame) -> list[Macro]:
    """Estimate, interval and verdict of every claim and model, and how many came out how."""
    rows = claims.to_dict("records")
    found = []
    for stem, row in zip(unique([("claim", r["claim"], r["model"]) for r in rows]), rows, strict=True):
        about = f"claim {row['claim']}, {row['model']}"
        found.append(Macro(stem, number(row["estimate"]).text, f"{about} ({row['aggregate']})"))
        if interval(row["lo"], row["hi"]).text:
            found.append(Macro(f"{stem}Interval", interval(row["lo"], row["hi"]).text, f"{about}, its interval"))
        found.append(Macro(f"{stem}Verdict", escape(row["verdict"]), f"{about}, its verdict"))
    counts = claims["verdict"].value_counts()
    totals = [Macro(macro_name("claims", v), str(int(counts.get(v, 0))), f"claims that are {v}") for v in VERDICTS]
    return [*totals, Macro(macro_name("claims"), str(len(claims)), "claims, one a model"), *found]


def render(macros: Sequence[Macro], *, study: str) -> str:
    r"""The file: a comment and a \newcommand each, in the given order."""
    head = f"% Numbers of the study {study}, written by isotrace; do not edit, input it: \\input{{macros}}"
    defined = [f"% {' '.join(m.about.split())}\n\\newcommand{{\\{m.name}}}{{{m.tex}}}" for m in macros]
    return "\n".join([head, *defined, ""])
