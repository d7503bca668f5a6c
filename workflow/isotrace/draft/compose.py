"""The text of a config for a series: what was found out stands beside the keys that follow from it, as comments.

Our choice: keys at their defaults are left out, and so are what only a larger study needs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from isotrace.corpus.shape import CONTEXT
from isotrace.draft.facts import Facts, Loss
from isotrace.settings.analysis import Bases
from isotrace.settings.inputs import Tokens

SAMPLE = "python:gensim/test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
"""The Wikipedia sample that gensim's tests ship (extra `demo`)."""
MANY = 24
"""Checkpoints on the hub from which on twelve are taken."""
TAKEN = 12
_CORPORA = {"image": "images", "audio": "audio"}


@dataclass(frozen=True)
class Answers:
    """What the files do not tell. text: paths or globs of what the model reads, empty for the Wikipedia sample."""

    name: str
    loss: Loss
    text: tuple[str, ...] = ()
    language: str | None = None
    total_steps: int | None = None
    tokens_per_step: int | None = None
    rows_independent: bool = False


def compose(facts: Facts, answers: Answers, file: str) -> str:
    """A whole config file, of which ``file`` is to be the name."""
    name = answers.name
    lines = [
        f"# Written by isotrace new from {facts.place}; config/README.md explains every key.",
        *(f"#   {line}" for line in next_commands(facts, name, file)),
        f"study: {name}",
        f"pathvars: {{results: results/{name}, logs: logs/{name}, benchmarks: benchmarks/{name}}}",
        "",
        *_corpora(facts, answers),
        "models:",
        f"  {name}:",
        *(f"    {line}" for line in _model(facts, answers)),
        *(["", *shape] if (shape := list(_shape(facts, answers))) else []),
    ]
    return "\n".join(lines) + "\n"


def next_commands(facts: Facts, name: str, file: str) -> list[str]:
    """What to run next, in order."""
    resolve = [f"isotrace resolve {name} --configfile {file}"] if facts.kind == "hub" else []
    return [*resolve, f"isotrace plan --configfile {file}", f"isotrace run --configfile {file}"]


def _corpora(facts: Facts, answers: Answers) -> Iterator[str]:
    if facts.kind == "vectors":
        return
    media = _CORPORA.get(answers.loss.modality)
    yield "corpora:"
    if not answers.text:
        yield '  # Better: text that the model was not trained on, as {source: files, paths: ["texts/*.txt"]}.'
        yield "  text:  # licence: CC BY-SA 3.0 and GFDL"
        yield "    source: mediawiki"
        yield f"    paths: {flow([SAMPLE])}"
        yield "    language: en"
    else:
        yield f"  {'text' if media is None else media}:"
        yield f"    source: {media or 'files'}"
        yield f"    paths: {flow(list(answers.text))}"
        if answers.language:
            yield f"    language: {answers.language}"
    yield ""


def _model(facts: Facts, answers: Answers) -> Iterator[str]:
    loss = answers.loss
    yield with_note(f"objective: {loss.objective}", loss.why)
    if loss.modality != "text":
        yield f"modality: {loss.modality}"
    yield "source:"
    yield f"  kind: {facts.kind}"
    yield with_note(f"  {'repo' if facts.kind == 'hub' else 'path'}: {flow(facts.place)}", facts.notes.get("path", ""))
    if facts.tokenizer:
        yield with_note(f"  tokenizer: {flow(facts.tokenizer)}", "the first checkpoint's folder has none")
    if facts.labels:
        yield f"  revisions: {flow(_revisions(facts))}"
    if facts.arrays:
        yield with_note(f"  arrays: {flow(facts.arrays)}", facts.notes.get("arrays", ""))
    if answers.rows_independent:
        yield "  rows_independent: true"
    if drawn(facts):
        yield with_note("  with_init: true", "an untrained step 0, as there is none")
    yield from _length(facts, answers)


def _length(facts: Facts, answers: Answers) -> Iterator[str]:
    if answers.total_steps is not None and answers.total_steps != facts.steps[-1]:
        told = facts.notes.get("total_steps", "") if answers.total_steps == facts.total_steps else ""
        yield with_note(f"total_steps: {answers.total_steps}", told)
    elif facts.kind != "hub" and facts.total_steps is None:
        yield "# total_steps: 100000  # if training goes on after the last stored step, which else counts as its end"
    if answers.tokens_per_step is not None:
        yield f"tokens_per_step: {answers.tokens_per_step}"


def _revisions(facts: Facts) -> dict[str, Any]:
    many = {"take": {"log": TAKEN}} if len(facts.steps) > MANY else {}
    return {"labels": facts.labels, **many}


def drawn(facts: Facts) -> bool:
    """Whether an untrained step 0 is added: of stored models that have none."""
    return facts.kind in ("local", "hub") and 0 not in facts.steps


def _shape(facts: Facts, answers: Answers) -> Iterator[str]:
    """Keys whose defaults do not fit this model or series."""
    context = next((facts.config[key] for key in CONTEXT if facts.config.get(key)), None)
    if context is not None and facts.kind != "vectors" and context < Tokens().sequence_length:
        yield from ("tokens:", with_note(f"  sequence_length: {context}", "the model's context"))
    small = facts.width is not None and 2 * max(Bases().ranks) > facts.width
    rank = max((facts.width or 0) // 2, 1)
    bases = [with_note(f"  ranks: [{rank}]", f"half the width {facts.width}")] if small else []
    bases += _early(facts, answers)
    yield from ["bases:", *bases] if bases else []
    yield from ["isotropy:", f"  ranks: [{rank}]", "dynamics:", f"  rank: {rank}"] if small else []


def _early(facts: Facts, answers: Answers) -> Iterator[str]:
    """The share of training that holds two checkpoints, where the default holds fewer."""
    steps = [0, *facts.steps] if drawn(facts) else list(facts.steps)
    total = answers.total_steps or steps[-1]
    if len(steps) < 2 or sum(step / total <= Bases().early_fraction for step in steps) >= 2:
        return
    share = math.ceil(100 * steps[1] / total) / 100
    if share < Bases().late_fraction:
        note = f"two checkpoints are needed, and step {steps[1]:,} is the second; better is one below 30 %"
        yield with_note(f"  early_fraction: {share:g}", note)


def with_note(line: str, note: str) -> str:
    """A line with a comment."""
    return f"{line}  # {note}" if note else line


def flow(value: Any) -> str:
    """A value on one line of YAML."""
    text = yaml.safe_dump(value, default_flow_style=True, width=10**6, sort_keys=False, allow_unicode=True)
    return text.strip().removesuffix("...").strip()
