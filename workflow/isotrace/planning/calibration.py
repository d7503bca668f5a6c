"""How fast this machine is, from a few seconds of it: products, starting a process, writing a file.

Processor time for the first two: what else runs meanwhile, and may not later, is left out.
No torch: what torch and transformers take to import is a multiple of what pandas takes (see ``costs``).
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isotrace.errors import DataError

_SIDE = 512
_PRODUCTS = 8
_BYTES = 2**26
_TIMES = 3
_STARTED = "import isotrace.params, pandas"


@dataclass(frozen=True)
class Calibration:
    """gflops: of float32 products of 512 x 512, in 1e9 operations a second, on ``threads`` threads of BLAS; start:
    of a process that imports the study and pandas, in seconds; write: to disk, synchronised, in 1e6 bytes a second.
    """

    gflops: float
    start: float
    write: float
    threads: int

    def as_dict(self) -> dict[str, Any]:
        """What ``calibration.json`` holds, sorted."""
        return dict(sorted(asdict(self).items()))


def calibrate(threads: int, folder: Path) -> Calibration:
    """Measure this machine, the best of three each; ``folder`` is where results go, and so what is written to."""
    import numpy as np
    from threadpoolctl import threadpool_limits

    side = np.ones((_SIDE, _SIDE), np.float32)

    def multiply() -> None:
        for _ in range(_PRODUCTS):
            side @ side

    with threadpool_limits(limits=threads):
        multiply()  # the first call also starts the threads
        products = _best(multiply, time.process_time) / threads
    start = _best(lambda: subprocess.run([sys.executable, "-c", _STARTED], check=True), _time_of_children)
    operations = 2 * _SIDE**3 * _PRODUCTS
    return Calibration(
        gflops=round(operations / products / 1e9, 3),
        start=round(start, 4),
        write=round(_BYTES / _best(lambda: _write(folder), time.perf_counter) / 1e6, 1),
        threads=threads,
    )


def calibration_of(found: dict[str, Any], where: str) -> Calibration:
    """A calibration as ``calibration.json`` holds it; DataError naming the file where it does not."""
    try:
        known = Calibration(**found)
    except TypeError:
        raise DataError(f"{where}: not a calibration; delete it, it is measured again in seconds") from None
    if min(known.gflops, known.start, known.write) <= 0:
        raise DataError(f"{where}: speeds must be above 0; delete it, it is measured again in seconds")
    return known


def _write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(_BYTES))
        file.flush()
        os.fsync(file.fileno())


def _best(action: Callable[[], object], clock: Callable[[], float]) -> float:
    """Seconds of the fastest of a few calls; other work on the machine only ever slows them."""
    taken = []
    for _ in range(_TIMES):
        began = clock()
        action()
        taken.append(clock() - began)
    return min(taken)


def _time_of_children() -> float:
    """Seconds of processor that finished child processes took."""
    times = os.times()
    return times.children_user + times.children_system
