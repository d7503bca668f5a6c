"""What a checkpoint's label says: step, tokens, stage, ingredient; one pattern a family and a generic one.

The families are the naming schemes of public series (Pythia, SmolLM2, OLMo, OLMo 2, MultiBERT, Trainer folders).
"""

import re
from dataclasses import dataclass

from isotrace.errors import ConfigError

_COUNT = r"\d+(?:\.\d+)?[kKMBT]?"
_SUFFIXES = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "T": 10**12}

FAMILIES: dict[str, str] = {
    "pythia": r"step(?P<step>\d+)",
    "smollm": r"step-(?P<step>\d+)",
    "olmo": rf"step(?P<step>\d+)-tokens(?P<tokens>{_COUNT})",
    "olmo2": rf"stage(?P<stage>\d+)(?:-ingredient(?P<ingredient>\d+))?-step(?P<step>\d+)-tokens(?P<tokens>{_COUNT})",
    "multibert": rf"(?:.*/)?multiberts-seed_\d+-step_(?P<step>{_COUNT})",
    "trainer": r"checkpoint-(?P<step>\d+)",
    "generic": (
        r"(?:.*/)?(?:stage[-_]?(?P<stage>\d+)[-_])?(?:ingredient[-_]?(?P<ingredient>\d+)[-_])?"
        rf"(?:.*?[-_])?(?:global[-_]?step|step|checkpoint|ckpt|iter)[-_]?(?P<step>{_COUNT})"
        rf"(?:[-_]tokens?[-_]?(?P<tokens>{_COUNT}))?"
    ),
}
"""Family -> a pattern that the whole label must match; only ``step`` is obligatory among its groups."""


@dataclass(frozen=True)
class Label:
    """One label, read. Units: optimiser steps, tokens; None where the label does not say."""

    text: str
    step: int
    tokens: int | None = None
    stage: int | None = None
    ingredient: int | None = None

    @property
    def order(self) -> tuple[int, int, int]:
        """Numeric order within a series: stage, step, ingredient."""
        return (self.stage or 0, self.step, self.ingredient or 0)


def count(text: str) -> int:
    """``"20k"`` -> 20000, ``"84B"`` -> 84000000000, ``"1000"`` -> 1000."""
    suffix = text[-1] if text[-1] in _SUFFIXES else ""
    number = text.removesuffix(suffix)
    return round(float(number) * _SUFFIXES[suffix]) if suffix or "." in number else int(number)


def read_label(text: str, family: str = "generic") -> Label | None:
    """Read one label; None if it is not one of the family (``main``, a branch with another purpose).

    ``family`` is a name of ``FAMILIES`` or a regular expression with a group ``step`` (and, if the labels have
    them, ``tokens``, ``stage``, ``ingredient``). ConfigError if it is neither.
    """
    match = _compiled(family).fullmatch(text)
    if match is None:
        return None
    found = {name: value for name, value in match.groupdict().items() if value is not None}
    return Label(
        text=text,
        step=count(found["step"]),
        tokens=count(found["tokens"]) if "tokens" in found else None,
        stage=int(found["stage"]) if "stage" in found else None,
        ingredient=int(found["ingredient"]) if "ingredient" in found else None,
    )


def _compiled(family: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(FAMILIES.get(family, family))
    except re.error as error:
        raise ConfigError(f"label pattern {family!r} is not a regular expression: {error}") from error
    if "step" not in pattern.groupindex:
        allowed = ", ".join(sorted(FAMILIES))
        raise ConfigError(f"label pattern {family!r} names no group 'step'; allowed: {allowed}, or (?P<step>\\d+)")
    return pattern


def checkpoint_ids(labels: list[Label]) -> list[str]:
    """``step{N}``, plus ``-{label}`` for those that share a step with another, in the order given."""
    steps = [label.step for label in labels]
    return [_identifier(label, shared=steps.count(label.step) > 1) for label in labels]


def _identifier(label: Label, *, shared: bool) -> str:
    # An id becomes part of a path and of a wildcard: nothing but the characters of the contract.
    slug = re.sub(r"[^A-Za-z0-9.]+", "-", label.text).strip("-.")
    return f"step{label.step}-{slug}" if shared else f"step{label.step}"
