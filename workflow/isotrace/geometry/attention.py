"""The attention table: drift of queries and keys, their alignment, sharpness; by head and token buckets.

Godey, de la Clergerie, Sagot 2024 (drift, u = first right singular vector of Q, sign of E<K, u>).
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.head_sums import SHARPNESS, HeadSums

Float = NDArray[np.float64]

ALL = "all"
COLUMNS = [
    "layer",
    "head",
    "query_bucket",
    "key_bucket",
    "mean_norm_q",
    "mean_norm_k",
    "drift_q",
    "drift_k",
    "mean_cosine_qk",
    "mean_dot_qk",
    "k_sign",
    "sigma1_share_q",
    "entropy",
    "max_weight",
    "logit_sd",
    "reason",
]


def attention_table(layers: Iterable[HeadSums]) -> pd.DataFrame:
    """One row a layer, query head, query bucket and key bucket, the last of each being ``all``.

    Where ``all`` is the one bucket there is, ``all`` still stands for every query and every visible key.
    A query head is set against the keys of its own group. mean_norm and drift = |mean|/mean|.|;
    mean_cosine_qk and mean_dot_qk of the two means; sigma1_share_q of the uncentred second moment;
    k_sign = sign of <mean k, u>, u the first right singular vector of Q with <mean q, u> >= 0.
    """
    frames = [_layer_table(sums) for sums in layers]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def drift_and_sharpness(sums: HeadSums) -> dict[str, Float]:
    """What needs no second moments, by name: arrays that broadcast to (H, query buckets + 1, key buckets + 1)."""
    group = sums.q_sum.shape[1] // sums.k_sum.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        q_mean, q_length = _means(sums.q_sum, sums.q_norm, sums.q_count)
        k_mean, k_length = (np.repeat(x, group, axis=0) for x in _means(sums.k_sum, sums.k_norm, sums.k_count))
        dot = np.einsum("hqd,hkd->hqk", q_mean, k_mean)
        q_drift, k_drift = np.linalg.norm(q_mean, axis=2), np.linalg.norm(k_mean, axis=2)
        # with_all runs down the query axis; the key axis already ends with every visible key
        rows = with_all(sums.rows)[:, :, None]
        return {
            "mean_norm_q": q_length[:, :, None],
            "mean_norm_k": k_length[:, None, :],
            "drift_q": (q_drift / q_length)[:, :, None],
            "drift_k": (k_drift / k_length)[:, None, :],
            "mean_cosine_qk": dot / (q_drift[:, :, None] * k_drift[:, None, :]),
            "mean_dot_qk": dot,
            **{name: (with_all(getattr(sums, name)) / rows).transpose(2, 0, 1) for name in SHARPNESS},
        }


def _layer_table(sums: HeadSums) -> pd.DataFrame:
    """Every measure as an array (heads, query buckets + 1, key buckets + 1), then one row an entry."""
    group = sums.q_sum.shape[1] // sums.k_sum.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        q_mean, _ = _means(sums.q_sum, sums.q_norm, sums.q_count)
        k_mean = np.repeat(_means(sums.k_sum, sums.k_norm, sums.k_count)[0], group, axis=0)
        share, first = _first_direction(with_all(sums.q_second).swapaxes(0, 1), q_mean)
        sign = np.sign(np.einsum("hqd,hkd->hqk", first, k_mean))
    measures = drift_and_sharpness(sums) | {"k_sign": sign, "sigma1_share_q": share[:, :, None]}
    names = [*sums.buckets, ALL]
    axes = [range(sums.q_sum.shape[1]), names, names]
    frame = pd.MultiIndex.from_product(axes, names=["head", "query_bucket", "key_bucket"]).to_frame(index=False)
    for name, values in measures.items():
        frame[name] = np.broadcast_to(values, sign.shape).ravel()
    frame = all_once(frame).assign(layer=sums.layer)
    frame["reason"] = [_reason(row) for row in frame.to_dict("records")]
    return frame[COLUMNS]


def all_once(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of a layer, of those with one key the last: ``all`` over everything, where a bucket is called so too."""
    keys = [name for name in ("head", "query_bucket", "key_bucket", "column") if name in frame]
    return frame.drop_duplicates(keys, keep="last")


def with_all(sums: Float) -> Float:
    """The sums (B, ...) with their total over buckets appended, (B + 1, ...)."""
    return np.concatenate([sums, sums.sum(axis=0, keepdims=True)])


def _means(total: Float, length: Float, count: Float) -> tuple[Float, Float]:
    """Mean vectors (heads, B + 1, d_h) and mean lengths (heads, B + 1)."""
    n = with_all(count)[:, None]
    return (with_all(total) / n[:, :, None]).swapaxes(0, 1), (with_all(length) / n).T


def _first_direction(second: Float, mean: Float) -> tuple[Float, Float]:
    """Top eigenvalue over trace (H, B + 1) and its eigenvector (H, B + 1, d_h) turned toward the mean."""
    values, vectors = np.linalg.eigh(second)
    first = vectors[..., -1]
    toward = np.where(np.sum(first * np.nan_to_num(mean), axis=2) < 0, -1.0, 1.0)
    return values[..., -1] / np.trace(second, axis1=2, axis2=3), first * toward[:, :, None]


def _reason(row: dict[Any, Any]) -> str:
    """Why a row has a NaN; empty where it has none."""
    missing = [name for name in COLUMNS[4:-1] if np.isnan(row[name])]
    if not missing:
        return ""
    if np.isnan(row["mean_norm_q"]):
        return "no query token in this bucket"
    if np.isnan(row["mean_norm_k"]):
        return "no key token in this bucket"
    if "entropy" in missing:
        return "no query sees two of these keys"
    return f"{missing[0]} is undefined: every query or key is zero"
