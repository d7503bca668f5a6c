"""One job of the workflow: threads as the config says, a log file, and one line for a mistake of the user's."""

import errno
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from isotrace.errors import DataError, IsotraceError


@contextmanager
def job(snakemake: Any) -> Iterator[dict[str, Any]]:
    """Run the body with the rule's ``spec`` (a plain dict) in a log and under the config's thread count.

    An `IsotraceError`, a full disk or a read-only folder ends the job with one line and exit code 1;
    anything else is a bug, and its traceback goes to the log.
    """
    spec: dict[str, Any] = snakemake.params.spec
    log = Path(str(snakemake.log[0]))
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        try:
            with threadpool_limits(limits=spec["threads"]), _stdout_to(stream):
                yield spec
        except IsotraceError as error:
            _stop(stream, str(error))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT):
                _report_bug(stream)
            _stop(stream, str(disk_error(error)))
        except Exception:
            _report_bug(stream)


def disk_error(error: OSError) -> DataError:
    """A full or read-only disk, as one line."""
    where = error.filename or "the results folder"
    return DataError(
        f"{where}: {error.strerror}; free space or choose another folder with pathvars.results, then rerun"
    )


@contextmanager
def _stdout_to(stream: Any) -> Iterator[None]:
    before, sys.stdout = sys.stdout, stream
    try:
        yield
    finally:
        sys.stdout = before


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
