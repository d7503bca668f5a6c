"""Run Snakemake and show one line a stage: what is done, how long it took, about how long is left.
Our own choice: the whole output goes to a log file; a failure shows its reason and the command that repeats it."""

from __future__ import annotations

import argparse
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import IO

from isotrace.dryrun import read, table
from isotrace.errors import ConfigError
from isotrace.progress import Failure, Progress, clock
from isotrace.screen import Screen

DRY = ("-n", "--dry-run", "--dryrun")
SAME_WORKFLOW = ("-s", "--snakefile", "-d", "--directory", "--config", "-C")
CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


def run(argv: Sequence[str]) -> int:
    """Run Snakemake with ``argv`` (``--cores``, ``--configfile``, anything of its own) and return its exit code.

    Raises ConfigError when there is no Snakefile to run. Ctrl-C reaches Snakemake and its jobs, once.
    """
    options, passed = _parser().parse_known_args(list(argv))
    configs, targets = split_configs(options.configfile)
    passed = [*targets, *passed]
    passed = _allowing(passed) if options.recapture else passed
    if not _names_snakefile(passed) and not any(Path(p).is_file() for p in ("Snakefile", "workflow/Snakefile")):
        raise ConfigError("run: no Snakefile here; call it in the folder that holds one, or pass --snakefile FILE")
    base = [sys.executable, "-m", "snakemake"]
    base += ["--configfile", *configs] if configs else []
    # Last, because --configfile takes every word after it up to the next option: a target would be one of them.
    profile, passed = _profile(passed)
    base += [*profile, *_cores(options.cores, named=bool(profile))]
    if any(flag in passed for flag in DRY):
        log = options.log.with_name("dry-run.log")
        return _dry([*base, *passed], log=log, folder=_folder(passed), allowed=options.recapture)
    options.log.parent.mkdir(parents=True, exist_ok=True)
    progress = Progress(cores=int(options.cores) if str(options.cores).isdigit() else _here())
    screen = Screen(sys.stdout)
    own = _own_log(options.log, _folder(passed))
    with own.open("w", encoding="utf-8") as log:
        code = _follow([*base, *passed], log=log, progress=progress, screen=screen)
    screen.clear()
    _finish(code, progress=progress, screen=screen, log=own, base=base, passed=passed)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="isotrace run", allow_abbrev=False)
    add_options(parser)
    return parser


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of ``isotrace run`` that are not Snakemake's."""
    add = parser.add_argument
    add("--cores", "-c", help="how many cores jobs may use (default all, or what a profile that you name says)")
    add("--configfile", nargs="+", default=[], help="config files, later ones win")
    add("--recapture", action="store_true", help="capture rows again that were cleaned away and are needed")
    add("--log", type=Path, default=Path("logs/run.log"), help="where Snakemake's output goes (default logs/run.log)")


def split_configs(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The config files among the words after ``--configfile``, and the targets that stand behind them."""
    files = [i for i, word in enumerate(words) if Path(word).suffix in CONFIG_SUFFIXES or Path(word).is_file()]
    end = max(files, default=0) + 1
    return list(words[:end]), list(words[end:])


def _here() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0))


def _profile(passed: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that name profiles, and all others."""
    at = {i for i, word in enumerate(passed) if word.partition("=")[0] in ("--profile", "--workflow-profile")}
    at |= {i + 1 for i in at if "=" not in passed[i]}
    return [w for i, w in enumerate(passed) if i in at], [w for i, w in enumerate(passed) if i not in at]


def _cores(given: str | None, *, named: bool) -> list[str]:
    """Snakemake's option; a profile that was named decides by itself, for on a cluster it bounds what one job gets."""
    return [] if given is None and named else ["--cores", given or str(_here())]


def _allowing(passed: Sequence[str]) -> list[str]:
    """The words for Snakemake with `recapture: true` among its config, beside what is set there already."""
    at = next((i for i, word in enumerate(passed) if word in ("--config", "-C")), len(passed))
    return [*passed[:at], "--config", "recapture=true", *passed[at + 1 :]]


def _folder(passed: Sequence[str]) -> Path:
    """The working folder that Snakemake is told, else this one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("-d", "--directory", type=Path, default=Path())
    found: Path = parser.parse_known_args(list(passed))[0].directory
    return found


def _own_log(log: Path, folder: Path) -> Path:
    """``log``, or a file beside it where the folder is locked: the run that goes on writes to ``log``."""
    locked = any((folder / ".snakemake" / "locks").glob("*.lock"))
    return log.with_name(f"{log.stem}-refused{log.suffix}") if locked else log


def _dry(command: list[str], *, log: Path, folder: Path, allowed: bool) -> int:
    """What would run and why, a line a rule; all that Snakemake prints goes to ``log``."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stdout, encoding="utf-8")
    lines = done.stdout.splitlines()
    shown = Progress(cores=1).complaints(lines)
    if done.returncode == 0:
        shown = table(read(lines), folder=folder, allowed=allowed)
    print("\n".join([*shown, f"full output: {log}"]))
    return done.returncode


def _names_snakefile(passed: Sequence[str]) -> bool:
    flags = ("-s", "--snakefile", "-d", "--directory", "--help", "-h", "--version", "-v")
    return any(p in flags or p.startswith(("--snakefile=", "--directory=")) for p in passed)


def _follow(command: list[str], *, log: IO[str], progress: Progress, screen: Screen) -> int:
    """Start ``command`` in a group of its own, so that a signal reaches it and its jobs exactly once."""
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True
    )
    assert child.stdout is not None
    lines: queue.Queue[str | None] = queue.Queue()
    threading.Thread(target=_pump, args=(child.stdout, lines), daemon=True).start()
    with child.stdout, _passed_on(child.pid):
        for line in _until_end(lines):
            log.write(line)
            log.flush()
            for text in progress.read(line.rstrip("\n"), now=time.monotonic()) if line else []:
                screen.line(text)
            screen.status(progress.status(now=time.monotonic()))
        code = child.wait()
    return code if code >= 0 else 128 - code


def _pump(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    """Move ``stream`` into ``lines``; None is the end. A thread, so that a silent job cannot stop the clock."""
    for line in stream:
        lines.put(line)
    lines.put(None)


def _until_end(lines: queue.Queue[str | None]) -> Iterator[str]:
    """Lines as they come, and an empty one each second in which none came."""
    while True:
        try:
            line = lines.get(timeout=1.0)
        except queue.Empty:
            yield ""
            continue
        if line is None:
            return
        yield line


@contextmanager
def _passed_on(pid: int) -> Iterator[None]:
    """SIGINT goes to the whole group, as a terminal would send it; SIGTERM to Snakemake, which ends its own jobs."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        os.killpg(pid, signal.SIGINT)

    def terminate(_number: int, _frame: FrameType | None) -> None:
        os.kill(pid, signal.SIGTERM)

    before = signal.signal(signal.SIGINT, interrupt), signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])


def _finish(
    code: int, *, progress: Progress, screen: Screen, log: Path, base: list[str], passed: Sequence[str]
) -> None:
    """The closing lines: nothing to do, all done, or what failed, why, and how to repeat only that."""
    took = clock(progress.elapsed(now=time.monotonic()))
    if code == 0:
        done = "nothing to be done" if progress.nothing else f"all {progress.total} jobs done in {took}"
        screen.line(f"{done}; full log: {log}")
        return
    for failure in progress.failures:
        for text in _explain(failure, command=[*base, *_kept(passed)]):
            screen.line(text)
    output = log.read_text(encoding="utf-8", errors="replace")
    if "LockException" in output:
        words = [word.replace(sys.executable, "python", 1) for word in [*base, *_kept(passed)]]
        screen.line("isotrace: error: the folder is locked by a run that goes on, or that was killed; if none goes on:")
        screen.line(f"  {shlex.join([*words, '--unlock'])}   and then the same command again")
    elif not progress.failures:
        for text in progress.complaints(output.splitlines()):
            screen.line(text)
    left = progress.total - progress.done
    counts = f"{len(progress.failures)} failed, {left} of {progress.total} jobs not done; " if progress.failures else ""
    screen.line(f"stopped after {took} with exit code {code}: {counts}full log: {log}")


def _kept(passed: Sequence[str]) -> list[str]:
    """The options that say which workflow this is, with their values; targets and the rest are left out.

    What is repeated is the failed job alone, of the same Snakefile, folder, profile and config.
    """
    kept: list[str] = []
    flag = ""
    for word in passed:
        if word.startswith("-"):
            flag = word.partition("=")[0] if word.partition("=")[0] in SAME_WORKFLOW else ""
            kept += [word] if flag else []
            flag = "" if "=" in word else flag
        elif flag in ("--config", "-C"):  # takes several values, each KEY=VALUE
            kept += [word] if "=" in word else []
        elif flag:
            kept.append(word)
            flag = ""
    return kept


def _explain(failure: Failure, *, command: list[str]) -> list[str]:
    """Lines about one failed job: rule and wildcards, its reason, its log's end, the command that repeats it."""
    where = f" ({failure.wildcards})" if failure.wildcards else ""
    lines = [f"failed: {failure.rule}{where}"]
    lines += [f"    {text}" for text in failure.reason()]
    if failure.log:
        lines.append(f"  its log: {failure.log}")
    if failure.outputs:
        words = [word.replace(sys.executable, "python", 1) for word in command]
        lines.append(f"  repeat only this: {shlex.join([*words, '--', failure.outputs[0]])}")
    return lines
