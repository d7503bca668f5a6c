"""What Snakemake takes to plan a study of which nothing exists, beside as many jobs of rules that say nothing.

Our choice: whole dry runs, each a process of its own, with all that they print thrown away.
"""

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from isotrace.bench.registry import Measured, Settings, Sizes, bench
from isotrace.bench.timing import median_ratio, rounded
from isotrace.bench.workload.study import write_bare, write_study
from isotrace.errors import DataError

ROOT = Path(__file__).parents[3]
SIZES = {"models": 10, "checkpoints": 150, "buckets": 6}
COMPARED = "a dry run of a study of which nothing exists / of as many jobs of bare rules"
SINGLE, FANNED = 5, 4
"""Rules with a job a checkpoint (fetched, audited, captured, frequency, attention), and with one a bucket."""
CHILD = """
import sys
from snakemake.cli import main
from isotrace.bench.memory import peak_of_this_process
try:
    main(sys.argv[1:])
except SystemExit as ended:
    if ended.code:
        raise
print(peak_of_this_process())
"""


@dataclass(frozen=True)
class DryRun:
    """seconds of the whole process, and its peak in megabytes."""

    seconds: float
    megabytes: float


@bench("dag", compared=COMPARED, wanted="at most 2.5; at these sizes within 90 s and 2000 MB", sizes=SIZES)
def dag(settings: Settings) -> Measured:
    """A job a bucket."""
    return _measured(settings, batched=False)


@bench(
    "dag-batched",
    compared=f"{COMPARED}, a job for all buckets of a checkpoint",
    wanted="at most 4; at these sizes within 90 s and 2000 MB",
    sizes=SIZES,
)
def dag_batched(settings: Settings) -> Measured:
    """A job a checkpoint and analysis (``execution.batch_buckets``)."""
    return _measured(settings, batched=True)


def _measured(settings: Settings, *, batched: bool) -> Measured:
    sizes: Sizes = settings.sizes
    with TemporaryDirectory() as folder:
        ours, bare = Path(folder, "ours"), Path(folder, "bare")
        config = write_study(ours, sizes, batched=batched)
        snakefile = write_bare(bare, {**sizes, "buckets": 1} if batched else sizes, single=SINGLE, fanned=FANNED)
        found = [_pair(i, ours, config, bare, snakefile) for i in range(settings.pairs)]
    own, other = ([run.seconds for run in side] for side in zip(*found, strict=True))
    jobs = sizes["models"] * sizes["checkpoints"] * (SINGLE + FANNED * (1 if batched else sizes["buckets"]))
    megabytes = median(run.megabytes for run, _ in found)
    details = {"jobs": jobs, "seconds": rounded(median(own)), "megabytes": rounded(megabytes)}
    return Measured(rounded(median_ratio(own, other)), details)


def _pair(index: int, ours: Path, config: Path, bare: Path, snakefile: Path) -> tuple[DryRun, DryRun]:
    """One dry run of each; which goes first alternates."""
    turns = [
        lambda: dry_run("--snakefile", str(ROOT / "Snakefile"), "--configfile", str(config), folder=ours),
        lambda: dry_run("--snakefile", str(snakefile), folder=bare),
    ]
    order = (0, 1) if index % 2 == 0 else (1, 0)
    found = {i: turns[i]() for i in order}
    return found[0], found[1]


def dry_run(*arguments: str, folder: Path) -> DryRun:
    """``snakemake --dry-run`` in a process of its own; DataError with the last line of one that fails."""
    command = [sys.executable, "-c", CHILD, "--dry-run", "--cores", "1", "--directory", str(folder), *arguments]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DataError(f"bench dag: the dry run failed: {last}")
    return DryRun(seconds, float(done.stdout.strip().splitlines()[-1]))
