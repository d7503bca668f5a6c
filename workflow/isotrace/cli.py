"""The command ``isotrace``: which command is called, and what becomes of a mistake of the user's.

What the commands are, their options and exit codes, stands in ``isotrace.commands``.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from isotrace.commands.registry import COMMANDS, find, parser
from isotrace.errors import IsotraceError


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a mistake of the user's is one line on stderr and exit code 1."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        code = _called(arguments)
        sys.stdout.flush()
    except IsotraceError as error:
        print(f"isotrace: error: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if (error.name or "isotrace").partition(".")[0] == "isotrace":
            raise
        print(f"isotrace: error: {error.name} is not installed; pip install 'isotrace[workflow]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("isotrace: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # What is still buffered would raise again when Python flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    return code


def _called(arguments: list[str]) -> int:
    known = [name for name in arguments[:1] if name in COMMANDS]
    if known and find(known[0]).passes_on:
        return find(known[0]).run(argparse.Namespace(arguments=arguments[1:]))
    options = parser(known or COMMANDS).parse_args(arguments)
    code: int = options.run(options)
    return code
