"""Made-up tables of attention, head by head: drift, mass and entropy that grow with training."""

import numpy as np
import pandas as pd
from synthetic_keys import BUCKETS, MODELS, STEPS, keys


def attention(models=MODELS, steps=STEPS, layers=4, heads=4) -> pd.DataFrame:
    rows = []
    for model in models:
        for step in steps:
            for layer in range(layers):
                for head in range(heads):
                    x = np.log10(1 + step) / 2.9
                    drift = 0.1 + 0.6 * x * (1 + layer) / layers + 0.03 * head * x
                    row = keys(model, step, "block.0", "all")
                    for key in ("study", "tokens_seen", "site", "layer", "bucket"):
                        del row[key]
                    rows.append(row | {
                        "layer": layer, "head": head, "query_bucket": "all", "key_bucket": "all", "mean_norm_q": 2.0,
                        "mean_norm_k": 2.0, "drift_q": drift, "drift_k": 0.8 * drift, "mean_cosine_qk": 0.1,
                        "mean_dot_qk": 0.4, "k_sign": -1.0, "sigma1_share_q": 0.3, "entropy": 1 - 0.5 * drift,
                        "max_weight": 0.1 + 0.4 * drift, "logit_sd": 1.0, "reason": "",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def _heads(models, steps, layers=2, heads=2):
    """Keys of every head; how far training is."""
    for model in models:
        for step in steps:
            for layer in range(layers):
                for head in range(heads):
                    row = keys(model, step, "block.0", "all")
                    for key in ("study", "tokens_seen", "site", "bucket"):
                        del row[key]
                    yield row | {"layer": layer, "head": head}, np.log10(1 + step) / 2.9


def attention_mass(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    """Frequent keys receive ever more than their share, and those of no bucket most."""
    rows = []
    for row, x in _heads(models, steps):
        for b, bucket in enumerate([*buckets, "none"]):
            ratio = 2 * x if bucket == "none" else x * (0.5 - b)
            rows.append(row | {
                "query_bucket": "all", "key_bucket": bucket, "mass": 0.1 * np.exp(ratio), "share": 0.1,
                "log_ratio": ratio, "lo": ratio - 0.1, "hi": ratio + 0.1, "reason": "",
            })  # fmt: skip
    return pd.DataFrame(rows)


def attention_intervals(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    """Entropies of every query bucket."""
    rows = []
    for row, x in _heads(models, steps):
        for b, bucket in enumerate([*buckets, "all"]):
            value = 0.9 - 0.3 * x / (1 + b)
            rows.append(row | {
                "query_bucket": bucket, "key_bucket": "all", "column": "entropy", "value": value,
                "lo": value - 0.02, "hi": value + 0.02, "reason": "",
            })  # fmt: skip
    return pd.DataFrame(rows)
