"""A bucket and bases of chosen rows, for tests of tables that read both splits."""

import numpy as np

from isotrace.geometry.bases import Basis
from isotrace.geometry.rows import Bucket

SITES = ("embed", "block.0", "block.1", "final_norm")
SPEC = {
    "seed": 0,
    "ranks": [2, 4],
    "draws": {"variance_weighted": 49},
    "centred": False,
    "resamples": 200,
    "confidence": 0.95,
    "min_rows": 32,
    "outlier_dimensions": 3,
}


def bucket(rng, n=160, d=16, sites=("embed", "block.0"), *, sequences=20, first=0, **arrays):
    """Gaussian rows, ``n / sequences`` a sequence, numbered from ``first``; any array may be given."""
    made = {
        "activations": rng.standard_normal((len(sites), n, d)),
        "gradients": rng.standard_normal((len(sites), n, d)),
        "token_id": rng.integers(0, 50, n),
        "sequence": first + np.arange(n) % sequences,
        "position": 1 + np.arange(n) // sequences,
        "loss": rng.gamma(4.0, size=n),
        "masked": np.zeros(n, bool),
    } | arrays
    return Bucket("b0", sites, **made)


def basis(vectors, sites=("embed", "block.0"), *, kind="fixed", method="pca"):
    """The same orthonormal vectors (d, k) at every site."""
    stacked = np.stack([vectors] * len(sites))
    d, k = vectors.shape
    return Basis(kind, method, sites, stacked, np.ones((len(sites), k)), np.full(len(sites), d))


def haar(rng, d, k):
    return np.linalg.qr(rng.standard_normal((d, k)))[0]
