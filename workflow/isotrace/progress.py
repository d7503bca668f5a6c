"""What Snakemake's output says: the jobs of each rule, which are done, which failed and why, how long is left.
Our own reading of the lines of Snakemake 9; time left is the mean time of finished jobs, rule by rule."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

_COUNT = re.compile(r"^(\w+)\s+(\d+)$")
_RULE = re.compile(r"^(?:local)?(?:rule|checkpoint) (\w+):$")
_FINISHED = re.compile(r"^Finished jobid: (\d+) \(Rule: (\w+)\)$")
_ERROR = re.compile(r"^Error in rule (\w+)(?:, jobid: \d+)?:$")
_FIELD = re.compile(r"^    (\w+): ?(.*)$")
_NOTHING = "Nothing to be done"
ERROR_MARK = "isotrace: error:"
LOG_LINES = 8


@dataclass
class Failure:
    """A failed job: ``rule``, ``wildcards`` as Snakemake prints them, ``log`` file or "", ``outputs``."""

    rule: str
    jobid: str = ""
    wildcards: str = ""
    log: str = ""
    outputs: list[str] = field(default_factory=list)

    def reason(self) -> list[str]:
        """The log's lines that are meant for the reader, else its last lines; empty without a log."""
        try:
            lines = Path(self.log).read_text(encoding="utf-8", errors="replace").splitlines() if self.log else []
        except OSError:
            return []
        return marked(lines) or [line for line in lines if line.strip()][-LOG_LINES:]


@dataclass
class Job:
    """A job that has started: when (seconds), and the fields of its block that a failure needs."""

    rule: str
    started: float
    wildcards: str = ""


@dataclass
class Stage:
    """One rule's jobs: how many there are and are done, when the first started, seconds of those done.

    ``writes`` is false of a rule that only collects others, such as ``all``; it has no line of its own.
    """

    total: int
    started: float | None = None
    seconds: list[float] = field(default_factory=list)
    writes: bool = False

    @property
    def done(self) -> int:
        return len(self.seconds)


def marked(lines: Sequence[str]) -> list[str]:
    """The lines that carry an error for the reader, from its mark on, each once."""
    found = [line[line.index(ERROR_MARK) :].rstrip() for line in lines if ERROR_MARK in line]
    return list(dict.fromkeys(found))


class Progress:
    """Reads Snakemake's output line by line; ``cores`` jobs at most run at a time."""

    def __init__(self, *, cores: int) -> None:
        self.cores = max(cores, 1)
        self.stages: dict[str, Stage] = {}
        self.jobs: dict[str, Job] = {}
        self.failures: list[Failure] = []
        self.total = self.done = 0
        self.nothing = False
        self._started: float | None = None
        self._table = False
        self._block: tuple[str, str] = ("", "")
        self._jobid = ""

    def read(self, line: str, *, now: float) -> list[str]:
        """Take one line in at time ``now`` (seconds); return the lines to show: that of a stage just finished."""
        self._started = now if self._started is None else self._started
        if line == "Job stats:":
            self._table = True
        elif self._table:
            self._read_table(line)
        elif line.startswith(_NOTHING):
            self.nothing = True
        elif rule := _RULE.match(line):
            self._block, self._jobid = ("job", rule[1]), ""
        elif error := _ERROR.match(line):
            self._block = ("error", error[1])
            self.failures.append(Failure(rule=error[1]))
        elif finished := _FINISHED.match(line):
            self._block = ("", "")
            return self._finish(finished[1], finished[2], now)
        elif part := _FIELD.match(line):
            self._read_field(part[1], part[2], now)
        return []

    def _read_table(self, line: str) -> None:
        if count := _COUNT.match(line):
            if count[1] == "total":
                self.total, self._table = int(count[2]), False
            elif count[1] != "job":
                self.stages[count[1]] = Stage(total=int(count[2]))
        elif not line.strip() and self.stages:
            self._table = False

    def _read_field(self, name: str, value: str, now: float) -> None:
        kind, rule = self._block
        if kind == "job" and name == "output":
            self.stages.setdefault(rule, Stage(total=1)).writes = True
        if kind == "job" and name == "jobid":
            self._jobid = value
            self.jobs[value] = Job(rule=rule, started=now)
            stage = self.stages.setdefault(rule, Stage(total=1))
            stage.started = now if stage.started is None else stage.started
        elif kind == "job" and name == "wildcards" and self._jobid:
            self.jobs[self._jobid].wildcards = value
        elif kind == "error":
            failure = self.failures[-1]
            if name == "jobid":
                failure.jobid = value
                failure.wildcards = self.jobs[value].wildcards if value in self.jobs else ""
            elif name == "log":
                failure.log = value.partition(" (check log file")[0].split(", ")[0]
            elif name == "output":
                failure.outputs = re.sub(r" \((?:send to storage|retrieve from storage)\)", "", value).split(", ")

    def _finish(self, jobid: str, rule: str, now: float) -> list[str]:
        job = self.jobs.pop(jobid, Job(rule=rule, started=now))
        stage = self.stages.setdefault(rule, Stage(total=1))
        stage.seconds.append(now - job.started)
        self.done += 1
        # a job that failed and was tried again is no failure
        self.failures = [f for f in self.failures if f.jobid != jobid]
        if stage.done < stage.total or not stage.writes:
            return []
        took = clock(now - (now if stage.started is None else stage.started))
        return [f"{rule:<16} {stage.done:>5}/{stage.total:<5} done in {took:<11} {self._left(now)}"]

    def elapsed(self, *, now: float) -> float:
        """Seconds since the first line."""
        return 0.0 if self._started is None else now - self._started

    def left(self, *, now: float) -> float | None:
        """Seconds the rest may take, or None while fewer than two rules have a finished job.

        A rule without a finished job is taken to need the median of the other rules' means.
        """
        means = {rule: statistics.fmean(s.seconds) for rule, s in self.stages.items() if s.seconds}
        if len(means) < 2 or self.done >= self.total:
            return None
        usual = statistics.median(means.values())
        rest = sum((s.total - s.done) * means.get(rule, usual) for rule, s in self.stages.items())
        running = sum(min(now - j.started, means.get(j.rule, usual)) for j in self.jobs.values())
        return max(rest - running, 0.0) / min(self.cores, max(self.total - self.done, 1))

    def _left(self, now: float) -> str:
        left = self.left(now=now)
        return f"total {self.done}/{self.total}" + (f", about {clock(left)} left" if left is not None else "")

    def status(self, *, now: float) -> str:
        """One line on the stages at work, or "" before anything started."""
        active = list(dict.fromkeys(job.rule for job in self.jobs.values()))
        if not active:
            return ""
        stages = ", ".join(f"{r} {self.stages[r].done}/{self.stages[r].total}" for r in active[:4])
        return f"{stages} ... {clock(self.elapsed(now=now))}, {self._left(now)}"

    def complaints(self, lines: Sequence[str]) -> list[str]:
        """Why Snakemake stopped without a failed job: marked errors, else the last lines of its output."""
        body = [line for line in lines if line.strip()]
        start = max((k for k, line in enumerate(body) if line.startswith("Building DAG")), default=-1)
        return marked(body) or body[start + 1 :][-LOG_LINES:]


def clock(seconds: float) -> str:
    """A duration for people: 4 s, 3 min 05 s, 2 h 10 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
