"""Attention sums from whole weights, token by token: what a run of query positions at a time must give too."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def naive(weights: NDArray[Any], bucket: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """rows (2, 3), entropy, max_weight, logit_sd (2, 3, H), mass (2, 2, H), share; weights (b, H, T, T or T + 1)."""
    total = {name: np.zeros((2, 3, weights.shape[1])) for name in ("entropy", "max_weight", "logit_sd")}
    total |= {"mass": np.zeros((2, 2, weights.shape[1])), "share": np.zeros((2, 2))}
    rows = np.zeros((2, 3))
    sink = np.full((len(bucket), weights.shape[3] - bucket.shape[1]), -1)
    keys = np.concatenate([bucket, sink], axis=1)
    for s, h, t in np.ndindex(weights.shape[:3]):
        if bucket[s, t] >= 0 and (weights[s, h, t] > 0).sum() >= 2:
            for column in range(2):
                total["mass"][bucket[s, t], column, h] += weights[s, h, t, keys[s] == column].sum()
                mine = (weights[s, h, t] > 0) & (keys[s] == column)
                total["share"][bucket[s, t], column] += mine.sum() / (weights[s, h, t] > 0).sum() / weights.shape[1]
        for column in range(3):
            seen = (weights[s, h, t] > 0) & ((keys[s] == column) | (column == 2))
            if bucket[s, t] < 0 or seen.sum() < 2:
                continue
            w = weights[s, h, t, seen] / weights[s, h, t, seen].sum()
            rows[bucket[s, t], column] += 1 / weights.shape[1]
            at = (bucket[s, t], column, h)
            total["entropy"][at] -= w @ np.log(w) / np.log(len(w))
            total["max_weight"][at] += w.max()
            total["logit_sd"][at] += np.log(w).std()  # logits are log weights up to a constant
    return total | {"rows": rows}
