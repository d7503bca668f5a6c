"""Studies in which nothing is true, and shares of them in which something is found all the same."""

import numpy as np
import pandas as pd
from made_up import SPEC

from isotrace.dynamics.simulate import ar1
from isotrace.dynamics.table import dynamics_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.energy import energy_table
from isotrace.geometry.rows import Bucket

LEVELS = (0.01, 0.05, 0.1, 0.25)
RUN_TESTS = ["trend", "early_late", "ordered_buckets"]
SITES = ("embed", "block.0")
BUCKETS = ("b0", "b1", "b2")
D, K, N = 16, 2, 48
ENERGY = {
    "seed": 0,
    "ranks": [K],
    "null_spaces": ["complement", "ambient"],
    "draws": {"complement": 99, "ambient": 99},
    "centred": False,
    "resamples": 8,
    "confidence": 0.95,
    "min_rows": 8,
}


def keys(model, i, checkpoints):
    progress = i / (checkpoints - 1)
    phase = "early" if progress <= 0.3 else "late" if progress >= 0.7 else "mid"
    known = {"study": "s", "model": model, "seed": 0, "checkpoint": f"step{i}", "step": 100 * i}
    return known | {"tokens_seen": np.nan, "progress": progress, "phase": phase}


def rotation(rng, d):
    q, r = np.linalg.qr(rng.standard_normal((d, d)))
    return q * np.sign(np.diag(r))


def gradients(rng):
    """Gradients (site, n, d) with one steep spectrum, in directions of nobody's choice."""
    return rng.standard_normal((len(SITES), N, D)) * np.arange(1, D + 1) ** -1.0


def rotated_run(rng, model, checkpoints, seed, aligned=lambda progress: False):
    """Energy rows of one run: the gradients of all sites and buckets turned by one rotation a checkpoint.

    Where ``aligned`` says so they are left as they are, with most of their energy in the basis.
    """
    vectors = np.stack([np.eye(D)[:, :K]] * len(SITES))
    basis = Basis("fixed", "pca", SITES, vectors, np.ones((len(SITES), K)), np.array([N] * len(SITES)))
    base = {b: gradients(rng) for b in BUCKETS}
    ids, frames, known = np.arange(N), [], []
    for i in range(checkpoints):
        turn = np.eye(D) if aligned(i / (checkpoints - 1)) else rotation(rng, D)
        for b, x in base.items():
            part = Bucket(b, SITES, x, (x @ turn).astype(np.float32), ids, ids % 12, ids, np.ones(N), np.zeros(N, bool))
            frame = energy_table(part, [basis], ENERGY | {"seed": seed}, variance={})
            frames.append(frame)
            known += [keys(model, i, checkpoints)] * len(frame)
    whole = pd.concat([pd.concat(frames, ignore_index=True), pd.DataFrame(known)], axis=1)
    return whole[whole["quantity"] == "gradient"].assign(layer=0)


def wandering(rng, models, checkpoints, *, autocorrelation=0.8):
    """Rows of the table geometry: AR(1) courses without trend, half of each a run's own and half a cell's."""
    rows = []
    for metric in ("mean_cosine", "loss"):
        for model in models:
            shared = ar1(rng, (1, 1, checkpoints), autocorrelation)
            value = shared + ar1(rng, (len(SITES), len(BUCKETS), checkpoints), autocorrelation)
            rows += [
                keys(model, i, checkpoints)
                | {"site": site, "layer": s, "bucket": bucket, "quantity": "activation", "metric": metric}
                | {"value": value[s, b, i], "lo": np.nan, "hi": np.nan}
                for i in range(checkpoints)
                for s, site in enumerate(SITES)
                for b, bucket in enumerate(BUCKETS)
            ]
    return pd.DataFrame(rows)


def rows_with_p(tables, seed, models, **families):
    spec = SPEC | {"seed": seed, "rank": K, "resamples": 2, "objectives": dict.fromkeys(models, "clm")}
    frame = dynamics_table(tables, {"families": families}, spec)
    return frame[frame["p_value"].notna()].assign(repetition=seed)


def too_often(p, levels=LEVELS):
    """Levels that p-values (n,) reach more often than they say, by more than three standard errors.

    Not two: some forty rates are looked at together, and exact tests would pass two in one of forty.
    """
    p = np.asarray(p)
    return {a: float((p <= a).mean()) for a in levels if (p <= a).mean() > a + 3 * np.sqrt(a * (1 - a) / len(p))}
