"""Intervals of drift, alignment and sharpness of attention heads, over groups of sequences.

Delete-a-group jackknife (Quenouille 1956, Tukey 1958) of the measures of Godey et al. 2024; our choice of unit.
"""

from collections.abc import Iterable
from itertools import product

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.attention import ALL, all_once, drift_and_sharpness
from isotrace.geometry.head_sums import SHARPNESS, Grouped, less, without_second
from isotrace.geometry.jackknife import margins

Float = NDArray[np.float64]

COLUMNS = ["layer", "head", "query_bucket", "key_bucket", "column", "value", "lo", "hi", "reason"]
MEASURED = ("drift_q", "drift_k", "mean_cosine_qk", "mean_dot_qk", *SHARPNESS)
FEW = "no interval: one group of sequences"
ALONE = "no interval: without one group of sequences nothing of this is left"


def attention_intervals(layers: Iterable[Grouped], confidence: float) -> pd.DataFrame:
    """One row a layer, head, pair of buckets and measure: value as in the attention table, lo, hi.

    Of pairs of buckets those with ``all`` on one side: every other pair would be a table of its own. The margin is
    Student's quantile times the standard error of leaving out a group of sequences.
    """
    frames = [_layer(one, confidence) for one in layers]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def _layer(sums: Grouped, confidence: float) -> pd.DataFrame:
    whole = without_second(sums.total)
    value = _stacked(drift_and_sharpness(whole), len(whole.buckets) + 1)
    margin = np.full(value.shape, np.nan)
    if len(sums.groups) > 1:
        left = (drift_and_sharpness(less(whole, group)) for group in sums.groups)
        with np.errstate(invalid="ignore"):
            margin = margins(np.stack([_stacked(one, len(whole.buckets) + 1) for one in left]), confidence)
    margin[~np.isfinite(margin)] = np.nan
    why = ALONE if len(sums.groups) > 1 else FEW
    names = [*whole.buckets, ALL]
    rows = []
    for (c, column), h, (q, query), (k, key) in product(
        enumerate(MEASURED), range(value.shape[1]), enumerate(names), enumerate(names)
    ):
        if _shown(column, query, key):
            at, half = value[c, h, q, k], margin[c, h, q, k]
            reason = "no value: see the attention table" if np.isnan(at) else why if np.isnan(half) else ""
            rows.append((whole.layer, h, query, key, column, at, at - half, at + half, reason))
    return all_once(pd.DataFrame(rows, columns=COLUMNS))


def _shown(column: str, query: str, key: str) -> bool:
    """Whether a pair of buckets has a row: a side that does not matter is ``all``."""
    return key == ALL if column == "drift_q" else query == ALL if column == "drift_k" else ALL in (query, key)


def _stacked(measures: dict[str, Float], names: int) -> Float:
    """The measures (measures, H, names, names) in the order of ``MEASURED``."""
    heads = measures["mean_dot_qk"].shape[0]
    return np.stack([np.broadcast_to(measures[name], (heads, names, names)) for name in MEASURED])
