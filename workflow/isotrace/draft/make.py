"""From a place to a config that validates: which kind of series it is, what is asked, what is refused (our choice)."""

import argparse
import re
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

from isotrace.draft.ask import Asker
from isotrace.draft.compose import Answers, compose, next_commands
from isotrace.draft.facts import Facts, Loss, span
from isotrace.draft.folder import STEP, is_checkpoint, read_folder
from isotrace.errors import ConfigError
from isotrace.settings.sources import REPO
from isotrace.study import Study, load, validated

KINDS = ("local", "hub", "vectors")
OBJECTIVES = ("clm", "mlm", "none")


@dataclass(frozen=True)
class Draft:
    """A config file to be written: where, what, and the commands that come next."""

    file: Path
    text: str
    found: str
    commands: list[str]


def draft(options: argparse.Namespace, asker: Asker) -> Draft:
    """What ``isotrace new`` writes; ConfigError or `DataError`, one line, where no config can be made of it."""
    place = options.place or asker.answer(
        "Folder of checkpoints or dumps, or repo on the hub (ORG/NAME)", flag="a folder or ORG/NAME"
    )
    kind = options.kind or kind_of(place)
    facts = _facts(kind, place, options)
    answers = _answers(facts, options, asker)
    file = Path(options.out or f"{answers.name}.yaml")
    if file.exists() and not options.force:
        raise ConfigError(f"new: {file} exists; name another with --out, or --force")
    text = compose(facts, answers, str(file))
    check(text, listed=kind != "hub")
    return Draft(
        file, text, f"{kind}: {facts.place}: {span(facts.steps)}", next_commands(facts, answers.name, str(file))
    )


def check(text: str, *, listed: bool) -> Study:
    """The study of a config's text; ``listed``: its checkpoints are known, so that they are looked at too."""
    raw = yaml.safe_load(text)
    return load(raw) if listed else validated(raw)


def kind_of(place: str) -> str:
    """local, hub or vectors, by what lies there; ConfigError where nothing does and it is no repo's name."""
    from isotrace.draft.dumps import ENDINGS, is_dump

    if place.endswith(ENDINGS):
        return "vectors"
    before, step, _ = place.partition(STEP)
    folder = Path(before).parent if step and not before.endswith("/") else Path(before)
    if folder.expanduser().is_dir():
        entries = [folder.expanduser(), *folder.expanduser().iterdir()]
        return "vectors" if any(map(is_dump, entries)) and not any(map(is_checkpoint, entries)) else "local"
    if re.fullmatch(REPO, place):
        return "hub"
    raise ConfigError(f"new: no folder {place}, and it is no repo's name (ORG/NAME)")


def _facts(kind: str, place: str, options: argparse.Namespace) -> Facts:
    if kind == "vectors":
        from isotrace.draft.dumps import read_dumps

        facts = read_dumps(place, dict(_named(text) for text in options.array))
        return replace(facts, tokenizer=options.tokenizer)
    if options.array:
        raise ConfigError(f"new --array: is of dumped vectors, and {place} is {kind}")
    if kind == "local":
        return read_folder(place, options.tokenizer)
    from isotrace.draft.hub import read_hub

    return read_hub(place, options.labels)


def _named(text: str) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not (role and equals and name):
        raise ConfigError(f"new --array: {text!r} is not KEY=NAME, such as activations=acts")
    return role, name


def _answers(facts: Facts, options: argparse.Namespace, asker: Asker) -> Answers:
    name = options.name or asker.answer("Name of the model and the study", flag="--name", default=_slug(facts.place))
    reads = facts.kind != "vectors"
    last = facts.total_steps or facts.steps[-1]
    total = options.total_steps
    if total is None and facts.total_steps is None and facts.kind == "local":
        total = _whole(asker.answer("Steps of the whole training", flag="--total-steps", default=str(last)))
    loss = _loss(facts, options, asker)
    return Answers(
        name=name,
        loss=loss,
        text=tuple(options.text or (_text(asker, loss.modality) if reads else ())),
        language=options.language,
        total_steps=facts.total_steps if total is None else total,
        tokens_per_step=options.tokens_per_step,
        rows_independent=facts.kind == "vectors" and _independent(facts, options, asker),
    )


def _loss(facts: Facts, options: argparse.Namespace, asker: Asker) -> Loss:
    if options.objective is not None:
        modality = facts.loss.modality if facts.loss else "text"
        return Loss(options.objective, modality)
    if facts.loss is not None:
        return facts.loss
    question = "Trained as clm (next token) or mlm (masked tokens); config.json names no class that tells"
    return Loss(asker.answer(question, flag="--objective", allowed=OBJECTIVES))


def _text(asker: Asker, modality: str) -> list[str]:
    if modality in ("image", "audio"):
        kind = "Images (.png, .jpg)" if modality == "image" else "Recordings (.wav)"
        return asker.answer(f"{kind} that the model is to read, files or globs", flag="--text").split()
    question = "Text files or globs, best none that it was trained on; nothing for a sample of the English Wikipedia"
    return asker.answer(question, flag="--text", default="").split()


def _independent(facts: Facts, options: argparse.Namespace, asker: Asker) -> bool:
    if options.rows_independent or "sequence" in facts.arrays:
        return bool(options.rows_independent)
    question = "No array says which rows share a text. Does every row have a text of its own (yes or no)"
    flag = "--array sequence=NAME, or --rows-independent"
    if asker.answer(question, flag=flag, allowed=("yes", "no")) == "yes":
        return True
    raise ConfigError(f"new: give {flag}; intervals resample whole sequences, so they must be known")


def _whole(text: str) -> int:
    if not text.replace(",", "").isdecimal():
        raise ConfigError(f"new --total-steps: {text!r} is no whole number")
    return int(text.replace(",", ""))


def _slug(place: str) -> str:
    """A name for a place: its last part that has letters and no step."""
    parts = [part for part in place.split("/") if STEP not in part and re.search("[A-Za-z0-9]", part)]
    return re.sub(r"[^A-Za-z0-9.-]+", "-", parts[-1] if parts else "mine").strip("-.") or "mine"
