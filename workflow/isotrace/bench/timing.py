"""Wall-clock times of two pieces of work that take turns in one process, so that both meet the same machine.

Our choice: which of the two goes first alternates, and ratios are medians over the pairs.
"""

import gc
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

Work = Callable[[int], object]


@dataclass(frozen=True)
class Times:
    """Seconds of each run, one entry a pair."""

    ours: tuple[float, ...]
    baseline: tuple[float, ...]


def interleaved(ours: Work, baseline: Work, pairs: int, *, before: Callable[[], object] = gc.collect) -> Times:
    """Run ``ours(i)`` and ``baseline(i)`` for i = 0 ... pairs - 1 in turns, ``before`` ahead of each, untimed.

    What needs warming up is warm by then.
    """
    seconds: dict[Work, list[float]] = {ours: [], baseline: []}
    for i in range(pairs):
        for work in (ours, baseline) if i % 2 == 0 else (baseline, ours):
            before()
            seconds[work].append(_seconds(work, i))
    return Times(tuple(seconds[ours]), tuple(seconds[baseline]))


def emptied(folder: Path) -> None:
    """Remove what the run before left in a folder, which is not part of what a run costs."""
    shutil.rmtree(folder)
    folder.mkdir()
    gc.collect()


def median_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> float:
    """Median over the pairs of numerator / denominator."""
    return median(n / d for n, d in zip(numerators, denominators, strict=True))


def rounded(value: float) -> float:
    """Four significant digits: more would pretend to be known."""
    return float(f"{value:.4g}")


def _seconds(work: Work, index: int) -> float:
    start = time.perf_counter()
    work(index)
    return time.perf_counter() - start
