"""Times of the numeric core on one core beside the bare matrix product that any such analysis needs (make bench)."""

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from isotrace.geometry.ablation import isotropy_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import energy_table
from isotrace.geometry.rows import Bucket

ENERGY: dict[str, Any] = {
    "seed": 0,
    "null_spaces": ["complement", "ambient", "variance_weighted"],
    "draws": {"complement": 999, "ambient": 999, "variance_weighted": 999},
    "centred": False,
    "resamples": 200,
    "confidence": 0.95,
    "min_rows": 32,
}
ISOTROPY: dict[str, Any] = {
    "seed": 0,
    "null_spaces": ["complement"],
    "draws": 999,
    "draws_corrected": 99,
    "estimators": ["plugin", "corrected"],
    "c0": [],
    "shrinkage": 0.1,
    "conventions": ["complement", "ambient"],
    "outliers": ["kept"],
    "outlier_threshold": 10.0,
    "groups": 20,
    "confidence": 0.95,
    "min_rows": 32,
    "order": "shrink_then_remove",
}


def cloud(sites: int, n: int, d: int) -> tuple[Bucket, Basis]:
    """A bucket of Gaussian rows with spectrum 1/i, and a random basis of half of d columns at most 32."""
    rng = np.random.default_rng(0)
    names = tuple(f"block.{i}" for i in range(sites))
    values = (rng.standard_normal((2, sites, n, d)) * np.arange(1, d + 1) ** -0.5).astype(np.float32)
    whole, none = np.arange(n), np.zeros(n, np.bool_)
    bucket = Bucket("b0", names, values[0], values[1], whole, whole // 8, whole % 8, np.ones(n, np.float32), none)
    k = min(32, d // 2)
    vectors = np.stack([np.linalg.qr(rng.standard_normal((d, k)))[0] for _ in names])
    return bucket, Basis("fixed", "pca", names, vectors, np.ones((sites, k)), np.full(sites, n))


def timed(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main(sites: int, n: int, d: int) -> None:
    bucket, basis = cloud(sites, n, d)
    rank = {"ranks": [basis.vectors.shape[2]]}
    variance = {s: np.cov(bucket.activations[i].astype(np.float64).T) for i, s in enumerate(bucket.sites)}
    wide = bucket.gradients.astype(np.float64)
    bare = timed(lambda: [2 * (x.T @ x) for x in wide])
    energy = timed(lambda: energy_table(bucket, [basis], ENERGY | rank, variance=variance))
    isotropy = timed(lambda: isotropy_table(bucket, [basis], ISOTROPY | rank, pooled={}))
    print(f"{sites} sites, {n} rows, width {d}, rank {rank['ranks'][0]}, activations and gradients, CPU seconds")
    print(f"bare second moments {bare:.2f}   energy {energy:.1f} ({energy / bare:.0f}x)", end="   ")
    print(f"ablation {isotropy:.1f} ({isotropy / bare:.0f}x)")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ("5", "2000", "2048")))
