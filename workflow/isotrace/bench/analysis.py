"""Energy and removal of one bucket of one wide checkpoint: seconds, peak memory, growth with sites and buckets.

Our choice: each run is a process of its own, so that none finds draws or warm libraries of another.
"""

import json
import subprocess
import sys
import time
from typing import Any

import numpy as np

from isotrace.bench.memory import peak_of_this_process
from isotrace.bench.registry import Measured, Settings, Sizes, bench
from isotrace.bench.timing import median_ratio, rounded
from isotrace.errors import ConfigError, DataError
from isotrace.geometry.ablation import isotropy_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import energy_table
from isotrace.geometry.rows import Bucket
from isotrace.seeding import generator

CHILD = "import json, sys; from isotrace.bench.analysis import analysed_alone; analysed_alone(json.loads(sys.argv[1]))"
GROUPS, LENGTH = 20, 20
"""Groups of the jackknife, rows of one sequence."""


@bench(
    "analysis",
    compared="seconds of energy and removal at two sites / at one, every null space of energy and the one of removal",
    wanted="at most 2.1; at most 120 seconds and 2,000 megabytes for all sites",
    sizes={"sites": 5, "rows": 2000, "width": 2048, "rank": 32, "draws": 999, "draws_corrected": 99},
)
def analysis(settings: Settings) -> Measured:
    """The ratio and that of two buckets to one, over the pairs; seconds and megabytes of all sites, run once."""
    sizes = settings.sizes
    if 2 * sizes["rank"] > sizes["width"] or sizes["rows"] < LENGTH * GROUPS:
        raise ConfigError(f"bench analysis --size: rank may be half of width at most, rows at least {LENGTH * GROUPS}")
    asked = {**sizes, "threads": settings.threads, "buckets": 1}
    every = _alone(asked)
    small = {"one": {"sites": 1}, "sites": {"sites": 2}, "buckets": {"sites": 1, "buckets": 2}}
    seconds: dict[str, list[float]] = {name: [] for name in small}
    for _ in range(settings.pairs):
        for name, changed in small.items():
            seconds[name].append(_alone({**asked, **changed})["seconds"])
    details = {
        "seconds": rounded(every["seconds"]),
        "megabytes": rounded(every["megabytes"]),
        "ratio_buckets": rounded(median_ratio(seconds["buckets"], seconds["one"])),
    }
    return Measured(rounded(median_ratio(seconds["sites"], seconds["one"])), details)


def _alone(sizes: Sizes) -> dict[str, float]:
    """Seconds and megabytes of one child process."""
    command = [sys.executable, "-c", CHILD, json.dumps(dict(sizes))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DataError(f"bench analysis: the analysis of {sizes['sites']} sites failed: {last}")
    found: dict[str, float] = json.loads(done.stdout)
    return found


def analysed_alone(sizes: Sizes) -> None:
    """Make rows, time both tables of every bucket, print seconds and this process's peak in megabytes."""
    from threadpoolctl import threadpool_limits

    made = [random_bucket(sizes, f"b{b}") for b in range(sizes["buckets"])]
    basis = first_axes(sizes)
    with threadpool_limits(limits=sizes["threads"]):
        start = time.perf_counter()
        for bucket in made:
            tables(bucket, basis, sizes)
        seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "megabytes": peak_of_this_process()}))


def tables(bucket: Bucket, basis: Basis, sizes: Sizes) -> None:
    """Both tables of one bucket; the variance-weighted null draws from the bucket's own covariance."""
    draws, rank = sizes["draws"], sizes["rank"]
    nulls = ["complement", "ambient", "variance_weighted"]
    common: dict[str, Any] = {"seed": 0, "ranks": [rank], "confidence": 0.95, "min_rows": 32}
    energy = {**common, "null_spaces": nulls, "draws": dict.fromkeys(nulls, draws), "centred": False, "resamples": 1000}
    pairs = zip(bucket.sites, bucket.activations, strict=True)
    variance = {site: np.cov(rows, rowvar=False, dtype=np.float64) for site, rows in pairs}
    energy_table(bucket, [basis], energy, variance=variance)
    removal = {
        **common,
        "null_spaces": ["complement"],
        "draws": draws,
        "draws_corrected": sizes["draws_corrected"],
        "estimators": ["plugin", "corrected"],
        "c0": [],
        "shrinkage": 0.1,
        "conventions": ["complement"],
        "outliers": ["kept"],
        "outlier_threshold": 10.0,
        "groups": GROUPS,
        "order": "shrink_then_remove",
    }
    isotropy_table(bucket, [basis], removal, pooled={})


def random_bucket(sizes: Sizes, name: str) -> Bucket:
    """Rows with variances 1/i along the axes, gradients the same; sequences of equal length."""
    n, d, count = sizes["rows"], sizes["width"], sizes["sites"]
    rng = generator(0, "bench", "analysis", name)
    scale = np.arange(1, d + 1, dtype=np.float32) ** -0.5
    x, g = (rng.standard_normal((count, n, d), np.float32) * scale for _ in range(2))
    ids, sites = np.arange(n), tuple(f"block.{i}" for i in range(count))
    return Bucket(name, sites, x, g, ids, ids // LENGTH, ids % LENGTH, np.ones(n), np.zeros(n, np.bool_))


def first_axes(sizes: Sizes) -> Basis:
    """The axes of largest variance, at every site."""
    d, k, count = sizes["width"], sizes["rank"], sizes["sites"]
    vectors = np.broadcast_to(np.eye(d)[:, :k], (count, d, k))
    sites = tuple(f"block.{i}" for i in range(count))
    return Basis("fixed", "pca", sites, vectors, np.ones((count, k)), np.full(count, sizes["rows"]))
