"""Rows that were cleaned away and that something needs again: which, how long that takes, and leave to do it.

Our choice: capturing is what costs, so it happens again when `recapture: true` says so, never in passing.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrace.errors import ConfigError

if TYPE_CHECKING:
    from isotrace.study import Study

HOW = "to allow it: isotrace run --recapture, or snakemake --config recapture=true"
_NAMED = 6
"""Checkpoints that a message names."""


@dataclass(frozen=True)
class Rows:
    """The rows of one checkpoint: their manifest, that of the moments of the same pass, and its benchmark file."""

    cache: Path
    moments: Path
    benchmark: Path

    @property
    def cleaned(self) -> bool:
        """Whether they were there once: a pass seals rows and moments, and cleaning leaves the moments."""
        return self.moments.is_file() and not self.cache.is_file()

    @property
    def name(self) -> str:
        """Model and checkpoint."""
        return f"{self.cache.parent.name} {self.cache.stem}"

    @property
    def seconds(self) -> float | None:
        """What the pass took that wrote them, None where that is not known."""
        try:
            with self.benchmark.open(encoding="utf-8", newline="") as stream:
                runs = [float(run["s"]) for run in csv.DictReader(stream, delimiter="\t")]
        except (OSError, KeyError, ValueError):
            return None
        return sum(runs) if runs else None


def rows_of(study: "Study", results: Path) -> list[Rows]:
    """The rows of every checkpoint of a study."""
    known = [(model, checkpoint) for model, series in study.series.items() for checkpoint in series.ids]
    timed = Path(study.pathvars.get("benchmarks", "benchmarks")) / "capture"
    return [
        Rows(results / "cache" / m / f"{c}.json", results / "moments" / m / f"{c}.json", timed / m / f"{c}.tsv")
        for m, c in known
    ]


def rows_written(jobs: Iterable[Any]) -> list[Rows]:
    """The rows that these jobs of Snakemake would write, those with an output ``cache``."""
    filling = [job for job in jobs if job.output.get("cache")]
    return [Rows(Path(job.output.cache), Path(job.output.moments), Path(job.benchmark)) for job in filling]


def refuse(wanted: Iterable[Rows], *, allowed: bool) -> None:
    """ConfigError, naming them and the flag, where passes are planned for rows that were cleaned."""
    again = [rows for rows in wanted if rows.cleaned]
    if again and not allowed:
        raise ConfigError(f"recapture: false, but {asked(again)}")


def note(known: Iterable[Rows]) -> list[str]:
    """A line on the rows that were cleaned, none where all are there."""
    again = [rows for rows in known if rows.cleaned]
    return [f"{said(again)} are captured again by whatever needs rows, such as a new rank; {HOW}"] if again else []


def asked(again: Sequence[Rows]) -> str:
    """That these rows are needed, and how to allow it."""
    return f"{said(again)} would have to be captured again; {HOW}"


def said(again: Sequence[Rows]) -> str:
    """These rows as the subject of a sentence, with the time that their passes took."""
    names = ", ".join(sorted((rows.name for rows in again), key=_by_number)[:_NAMED])
    more = f" and {len(again) - _NAMED} more" if len(again) > _NAMED else ""
    plural = "checkpoints" if len(again) > 1 else "checkpoint"
    return f"cleaned rows of {len(again)} {plural} ({names}{more}{_took(again)})"


def _by_number(name: str) -> list[tuple[str, int]]:
    """Step 10 after step 3."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D+)(\d*)", name)]


def _took(again: Sequence[Rows]) -> str:
    known = [rows.seconds for rows in again]
    seconds = [s for s in known if s is not None]
    if not seconds:
        return ""
    from isotrace.planning.lines import duration

    whole = sum(seconds) * len(again) / len(seconds)
    return f"; {duration(whole / 3600)} of jobs when last done"
