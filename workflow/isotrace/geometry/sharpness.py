"""How sharp attention is: entropy, largest weight and spread of logits of query rows over sets of keys.

Godey, de la Clergerie, Sagot 2024 for the entropy; the others are our choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


@dataclass(frozen=True)
class ByBucket:
    """Of R query rows over the keys of each of B buckets and, last, over every visible key.

    seen (R, B + 1) visible keys; entropy, max_weight, logit_sd, each (H, R, B + 1), as in ``sharpness``, undefined
    where fewer than two are visible; mass (H, R, B) the attention weight that a bucket's keys receive.
    """

    seen: Float
    entropy: Float
    max_weight: Float
    logit_sd: Float
    mass: Float


def sharpness_by_bucket(
    logits: Float, visible: NDArray[np.bool_], key_bucket: NDArray[np.integer], buckets: int
) -> ByBucket:
    """``ByBucket`` from one exponential; logits (H, R, T), visible (R, T), key_bucket (T,) in -1..B-1."""
    used = np.flatnonzero(visible.any(axis=0))
    used = used[np.argsort(key_bucket[used], kind="stable")]  # a bucket's keys side by side
    bucket, hidden = key_bucket[used], ~visible[:, used]
    indicator = np.ones((len(used), buckets + 1))
    indicator[:, :buckets] = bucket[:, None] == np.arange(buckets)
    shifted = np.take(logits, used, axis=2)  # from here on in place: fresh memory costs as much as an exponential
    np.copyto(shifted, -np.inf, where=hidden)
    largest = _largest(shifted, bucket, buckets)
    top = largest[:, :, -1:]
    with np.errstate(invalid="ignore"):  # a row may see nothing
        shifted -= top
    np.copyto(shifted, 0.0, where=hidden)
    raised, shown = np.exp(shifted), (~hidden).astype(np.float64)
    raised *= shown
    seen = shown @ indicator
    total, first = raised @ indicator, shifted @ indicator
    raised *= shifted
    weighted = raised @ indicator
    shifted *= shifted
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = (np.log(total) - weighted / total) / np.log(seen)
        variance = (shifted @ indicator) / seen - (first / seen) ** 2
        found = entropy, np.exp(largest - top) / total, np.sqrt(np.maximum(variance, 0.0))
    lost = (seen >= 2) & (total == 0)  # every key of the bucket underflows beside the row's largest logit
    for h, t, c in np.argwhere(lost):
        mine = used[~hidden[t] & (indicator[:, c] > 0)]
        one = sharpness(logits[h : h + 1, t : t + 1, mine], np.ones((1, len(mine)), np.bool_))
        for values, value in zip(found, one, strict=True):
            values[h, t, c] = value[0, 0]
    whole = np.where(total[:, :, -1:] > 0, total[:, :, -1:], 1.0)  # a row that sees nothing gives nothing
    return ByBucket(seen, *found, mass=total[:, :, :-1] / whole)


def _largest(logits: Float, bucket: NDArray[np.integer], buckets: int) -> Float:
    """The largest logit (H, R, B + 1) of each bucket's keys, which lie side by side, and of all; -inf of none."""
    present, first = np.unique(bucket, return_index=True)
    of_each = np.maximum.reduceat(logits, first, axis=2)
    largest = np.full((*logits.shape[:2], buckets + 1), -np.inf)
    largest[:, :, present[present >= 0]] = of_each[:, :, present >= 0]
    largest[:, :, -1] = of_each.max(axis=2)
    return largest


def sharpness(logits: Float, visible: NDArray[np.bool_]) -> tuple[Float, Float, Float]:
    """(entropy, max_weight, logit_sd), each (H, R), of R query rows over the keys they see.

    logits (H, R, T), visible (R, T) with at least two keys a row. The weights are the softmax over the
    visible keys; entropy over log(number visible), in [0, 1]; sd with ddof 0, in units of the logits.
    """
    n = visible.sum(axis=1)
    masked = np.where(visible, logits, -np.inf)
    shifted = masked - masked.max(axis=2, keepdims=True)
    raised = np.exp(shifted)
    total = raised.sum(axis=2)
    finite = np.where(visible, shifted, 0.0)
    # entropy = log Z - sum w * shifted
    entropy = (np.log(total) - np.sum(raised * finite, axis=2) / total) / np.log(n)
    mean = finite.sum(axis=2) / n
    square = np.where(visible, (finite - mean[:, :, None]) ** 2, 0.0).sum(axis=2) / n
    return entropy, 1 / total, np.sqrt(square)
