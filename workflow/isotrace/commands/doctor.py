"""``isotrace doctor``: what would go wrong with a study on this machine, before it does."""

import argparse
from pathlib import Path

from isotrace.commands.registry import add_configfile, command


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace doctor``."""
    add_configfile(parser)
    parser.add_argument(
        "--workflow-profile",
        type=Path,
        default=Path("profiles/default"),
        help="the profile that the run will use (default profiles/default)",
    )
    parser.add_argument("--cores", type=int, help="cores that the run will use; those of this machine unless given")


@command(
    "doctor",
    help="what would go wrong with a study on this machine: a line a check, and what to do",
    options=add_options,
    examples=(
        "isotrace doctor --configfile mine.yaml",
        "isotrace doctor --configfile mine.yaml --workflow-profile profiles/slurm",
    ),
    codes={0: "no check failed", 1: "a check failed, or something of yours to fix (one line on stderr)"},
)
def _doctor(options: argparse.Namespace) -> int:
    from isotrace.doctor.examine import examine
    from isotrace.doctor.findings import lines
    from isotrace.doctor.machine import this_machine

    found = list(
        examine(
            options.configfile,
            this_machine,
            profile=options.workflow_profile,
            cores=options.cores,
            cuda=_cuda,
            token=_token,
        )
    )
    print("\n".join(lines(found)))
    counts = {status: sum(one.status == status for one in found) for status in ("ok", "warn", "fail")}
    print(", ".join(f"{count} {status}" for status, count in counts.items()))
    return 1 if counts["fail"] else 0


def _cuda() -> bool:
    import torch

    return bool(torch.cuda.is_available())


def _token() -> str | None:
    from huggingface_hub import get_token

    return get_token()
