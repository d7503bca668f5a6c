"""Made-up tables with known answers for the tests of dynamics: ratios exp(height) at every site and bucket."""

import numpy as np
import pandas as pd

STEPS = (0, 10, 20, 50, 70, 80, 90, 100)
SITES = {"embed": -1, "block.0": 0, "block.1": 1, "final_norm": 2}
BUCKETS = ("b0", "b1", "b2")
SPEC = {
    "seed": 0,
    "rank": 8,
    "method": "pca",
    "null_space": "complement",
    "resamples": 100,
    "confidence": 0.95,
    "objectives": {"decoder": "clm", "encoder": "mlm"},
}


def run_keys(model, step):
    progress = step / STEPS[-1]
    phase = "early" if progress <= 0.3 else "late" if progress >= 0.7 else "mid"
    known = {"study": "s", "model": model, "seed": 0, "checkpoint": f"step{step}", "step": step}
    return known | {"tokens_seen": np.nan, "progress": progress, "phase": phase}


def energy(height, models=("decoder",), steps=STEPS, *, error=0.05, rank=8, basis="fixed"):
    """Energy rows of ratio exp(height(model, step, site, bucket)) with a relative error of ``error``."""
    rows, k = [], rank / (128 - rank)
    for model in models:
        for step in steps:
            for site, layer in SITES.items():
                for b, bucket in enumerate(BUCKETS):
                    odds = k * np.exp(height(model, step, site, b))
                    lo, hi = (odds * np.exp(s * error) for s in (-1, 1))
                    share = odds / (1 + odds)
                    place = {"site": site, "layer": layer, "bucket": bucket, "quantity": "gradient", "basis": basis}
                    value = {"energy": share, "energy_lo": lo / (1 + lo), "energy_hi": hi / (1 + hi)}
                    value |= {"enrichment": share * 128 / rank, "ratio": odds / k}
                    rest = {"method": "pca", "rank": rank, "null_space": "complement", "reason": ""}
                    rows.append(run_keys(model, step) | place | value | rest)
    return pd.DataFrame(rows)


def attention(slope, steps=STEPS, heads=4):
    """Attention rows whose query drift grows by slope(head) from first to last step."""
    rows = []
    for step in steps:
        for layer in range(2):
            for head in range(heads):
                drift = 0.1 + slope(head) * step / STEPS[-1]
                place = {"layer": layer, "head": head, "query_bucket": "all", "key_bucket": "all"}
                rows.append(run_keys("decoder", step) | place | {"drift_q": drift, "drift_k": 0.1, "entropy": 0.9})
    return pd.DataFrame(rows)


def attention_intervals(value, column="entropy", heads=2, layers=2, steps=STEPS, error=0.01):
    """Rows of ``column`` = value(x, layer, head), x from 0 to 1, at every query bucket and all."""
    rows = []
    for step in steps:
        for layer in range(layers):
            for head in range(heads):
                for b, bucket in enumerate((*BUCKETS, "all")):
                    y = value(step / STEPS[-1], layer, head) - 0.02 * b * (bucket != "all")
                    place = {"layer": layer, "head": head, "query_bucket": bucket, "key_bucket": "all"}
                    known = {"column": column, "value": y, "lo": y - error, "hi": y + error, "reason": ""}
                    rows.append(run_keys("decoder", step) | place | known)
    return pd.DataFrame(rows)


def norm_drift(value, steps=STEPS, layers=2, error=0.01):
    """Rows of the metric norm_drift of activations = value(x, layer) at every block and bucket."""
    rows = []
    for step in steps:
        for layer in range(layers):
            for bucket in BUCKETS:
                y = value(step / STEPS[-1], layer)
                place = {"site": f"block.{layer}", "layer": layer, "bucket": bucket, "quantity": "activation"}
                known = {"metric": "norm_drift", "value": y, "lo": y - error, "hi": y + error, "reason": ""}
                rows.append(run_keys("decoder", step) | place | known)
    return pd.DataFrame(rows)
