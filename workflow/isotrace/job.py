"""One job of the workflow: threads as the config says, a log file, and one line for a mistake of the user's."""

import errno
import os
import shutil
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from isotrace.errors import IsotraceError

FULL = 2**18
"""Bytes free below which a disk counts as full."""

OFFLINE = "HF_HUB_OFFLINE"


@contextmanager
def job(snakemake: Any, *, online: bool = False) -> Iterator[dict[str, Any]]:
    """Run the body with the rule's ``spec`` (a plain dict) in a log and under the config's thread count.

    No job but a download is ``online``: for all others the hub's client fails rather than ask the network.

    An `IsotraceError`, a full disk or a read-only folder ends the job with one line and exit code 1;
    anything else is a bug, and its traceback goes to the log.
    """
    spec: dict[str, Any] = snakemake.params.spec
    log = Path(str(snakemake.log[0]))
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        try:
            with threadpool_limits(limits=spec["threads"]), _stdout_to(stream), _hub(online):
                yield spec
        except IsotraceError as error:
            _stop(stream, str(error))
        except Exception as error:
            problem = disk_problem(error, Path(str([*snakemake.output, log][0])))
            _stop(stream, problem) if problem else _report_bug(stream)


def disk_problem(error: Exception, output: Path) -> str:
    """A full or read-only disk as one line, empty for any other error.

    Libraries hide the cause (torch says "unexpected pos", shutil collects errors), so the disk itself is asked too.
    """
    folder = next(p for p in output.absolute().parents if p.exists())
    where, what = folder, ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
        where, what = Path(error.filename or folder), error.strerror or ""
    elif shutil.disk_usage(folder).free < FULL:
        what = os.strerror(errno.ENOSPC)
    advice = "free space or choose another folder with pathvars.results, then rerun"
    return f"{where}: {what}; {advice}" if what else ""


@contextmanager
def _stdout_to(stream: Any) -> Iterator[None]:
    before, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = before


@contextmanager
def _hub(online: bool) -> Iterator[None]:
    """Keep the hub's client off the network unless ``online``, also where it has read the environment already."""
    before, client = dict(os.environ), sys.modules.get("huggingface_hub.constants")
    known = getattr(client, OFFLINE, False)
    if not online:
        os.environ[OFFLINE] = "1"
    if client is not None:
        vars(client)[OFFLINE] = known or not online
    try:
        yield
    finally:
        os.environ.pop(OFFLINE, None)
        os.environ.update({OFFLINE: before[OFFLINE]} if OFFLINE in before else {})
        if client is not None:
            vars(client)[OFFLINE] = known


def _stop(stream: Any, message: str) -> None:
    line = f"isotrace: error: {message}"
    print(line, file=stream)
    print(line, file=sys.stderr)
    raise SystemExit(1)


def _report_bug(stream: Any) -> None:
    traceback.print_exc(file=stream)
    print(f"isotrace: error: unexpected; this is a bug, its traceback is in {stream.name}", file=sys.stderr)
    raise SystemExit(1)


def progress(what: str, every: int = 10) -> Callable[[int, float], None]:
    """A callback that writes a step and a value to the log, flushed, every so many steps."""

    def report(step: int, value: float) -> None:
        if step % every == 0:
            print(f"step {step}: {what} {value:.4f}", flush=True)

    return report
