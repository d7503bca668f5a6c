"""Peak resident memory of a streaming capture with ten times the tokens, each in a process of its own.

Our choice: as many rows are cached either way, moments run over every evaluation token.
"""

import json
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from isotrace.bench.registry import Measured, Settings, Sizes, bench
from isotrace.bench.timing import rounded
from isotrace.errors import DataError

TIMES = 10
CHILD = "import json, sys; from isotrace.bench.memory import capture_alone; capture_alone(json.loads(sys.argv[1]))"


@bench(
    "memory",
    compared=f"peak resident memory of a streaming capture: {TIMES} times the tokens / the tokens",
    wanted="at most 1.10",
    sizes={
        "layers": 2,
        "width": 128,
        "vocabulary": 4096,
        "length": 256,
        "tokens": 16384,
        "rows": 4096,
        "buckets": 4,
        "batch_size": 16,
    },
)
def memory(settings: Settings) -> Measured:
    """The median ratio over pairs of processes, and the medians in megabytes."""
    few, many = [], []
    for _ in range(settings.pairs):
        few.append(_peak(settings.sizes, settings.threads))
        many.append(_peak({**settings.sizes, "tokens": TIMES * settings.sizes["tokens"]}, settings.threads))
    ratio = median(b / a for a, b in zip(few, many, strict=True))
    return Measured(rounded(ratio), {"megabytes": rounded(median(few)), "megabytes_many": rounded(median(many))})


def _peak(sizes: Sizes, threads: int) -> float:
    """Peak of one child process in megabytes."""
    arguments = json.dumps({**sizes, "threads": threads})
    done = subprocess.run([sys.executable, "-c", CHILD, arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DataError(f"bench memory: a capture of {sizes['tokens']} tokens failed: {last}")
    return float(done.stdout)


def capture_alone(sizes: Sizes) -> None:
    """Capture once, every evaluation token into the moments, and print the peak of this process in megabytes."""
    from threadpoolctl import threadpool_limits

    from isotrace.bench.workload.bare import random_model
    from isotrace.bench.workload.stores import captured, random_passes
    from isotrace.capture.device import repeatable
    from isotrace.capture.maps import Maps
    from isotrace.capture.sites import find_sites

    repeatable(sizes["threads"])
    model, passes = random_model(sizes), random_passes(sizes, sizes["rows"])
    sites, size = find_sites(model), sizes["batch_size"]
    with TemporaryDirectory() as folder, threadpool_limits(limits=sizes["threads"]):
        asked = {"batch_size": size, "threads": sizes["threads"]}
        captured(Path(folder), model, sites, Maps({}, {}), passes, moments_tokens="all", **asked)
    print(peak_of_this_process())


def peak_of_this_process() -> float:
    """Megabytes; rusage would report the parent's peak where that is larger, so the kernel's own mark is read."""
    status = Path("/proc/self/status")
    if not status.is_file():
        raise DataError("peak memory is read from /proc/self/status, which this system does not have")
    line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / 1e6
