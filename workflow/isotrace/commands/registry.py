"""Which commands exist: a decorator that registers what a module of this package runs, with its options and examples.

Our choice: one module a command, imported when it is called, so that no command pays for another's imports.
"""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from isotrace import __version__

COMMANDS = (
    "new",
    "resolve",
    "plan",
    "power",
    "doctor",
    "run",
    "watch",
    "headline",
    "check",
    "audit",
    "show",
    "figures",
    "compare",
    "verify",
    "lock",
    "bench",
)
"""Modules of this package that are commands, in the order in which a study needs them."""

CODES = {
    0: "done",
    1: "something of yours to fix; one line on stderr says what",
    2: "wrong usage",
    130: "interrupted",
    141: "the reader of the output went away",
}
"""Exit codes of every command; a command may say more of its own."""

DEMO = Path("config/demo.yaml")

Options = Callable[[argparse.ArgumentParser], None]
Run = Callable[[argparse.Namespace], int]


@dataclass(frozen=True)
class Command:
    """One command: what it is for, how it is called, what it gives back.

    codes: what its exit codes mean where ``CODES`` does not say it; passes_on: options that it does not know are not
    its own to refuse, and its whole command line is in ``arguments``.
    """

    name: str
    help: str
    options: Options
    run: Run
    examples: tuple[str, ...]
    codes: Mapping[int, str] = field(default_factory=dict)
    passes_on: bool = False


_COMMANDS: dict[str, Command] = {}


def command(
    name: str,
    *,
    help: str,
    examples: Sequence[str],
    options: Options = lambda parser: None,
    codes: Mapping[int, str] | None = None,
    passes_on: bool = False,
) -> Callable[[Run], Run]:
    """Register ``run(options) -> exit code`` as ``isotrace NAME``, in the module ``commands/NAME.py``.

    ``options`` adds to the parser; ``examples`` are whole command lines, of which each must parse.
    """

    def register(run: Run) -> Run:
        _COMMANDS[name] = Command(name, help, options, run, tuple(examples), dict(codes or {}), passes_on)
        return run

    return register


def find(name: str) -> Command:
    """The command of that name; importing its module registers it."""
    import_module(f"isotrace.commands.{name}")
    return _COMMANDS[name]


def parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of ``isotrace`` with the commands of these names; only their modules are imported."""
    whole = argparse.ArgumentParser(
        prog="isotrace",
        description="Where a language model's anisotropy comes from, when it forms, which directions carry it.",
        epilog="isotrace COMMAND --help shows the options of a command, examples and its exit codes.",
    )
    whole.add_argument("--version", action="version", version=f"isotrace {__version__}")
    below = whole.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name in names:
        found = find(name)
        one = below.add_parser(
            name,
            help=found.help,
            description=f"{found.help[:1].upper()}{found.help[1:]}.",
            epilog=ending(found),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=not found.passes_on,
        )
        found.options(one)
        one.set_defaults(run=found.run)
    return whole


def codes(found: Command) -> dict[int, str]:
    """What each exit code of a command means."""
    return dict(sorted({**CODES, **found.codes}.items()))


def ending(found: Command) -> str:
    """The end of a command's help: examples, and its exit codes."""
    lines = ["examples:", *(f"  {line}" for line in found.examples)]
    return "\n".join([*lines, "", "exit codes:", *(f"  {code}  {what}" for code, what in codes(found).items())])


def add_configfile(to: argparse.ArgumentParser, *, required: bool = False) -> None:
    """The option ``--configfile``; the demo's where it is not given, unless it is required."""
    default = "" if required else f" (default {DEMO})"
    to.add_argument(
        "--configfile",
        type=Path,
        required=required,
        default=None if required else DEMO,
        help=f"the study's config{default}",
    )
