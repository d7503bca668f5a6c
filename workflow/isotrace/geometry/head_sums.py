"""Sums over tokens from which a head's drift, alignment and sharpness follow; they add over sequences.

Godey, de la Clergerie, Sagot 2024 (drift of queries and keys, entropy); queries and keys are post-RoPE.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]

SHARPNESS = ("entropy", "max_weight", "logit_sd")


@dataclass(frozen=True)
class HeadSums:
    """Float64 sums over the tokens of one layer; H query heads, K key heads (H a multiple of K), B buckets.

    q_count (B,), q_sum (B, H, d_h), q_norm (B, H) sum of |q|, q_second (B, H, d_h, d_h) sum of q q^T;
    k_count (B,), k_sum (B, K, d_h), k_norm (B, K): by the bucket of the query's or key's token.
    Sharpness by query bucket and, on the second axis, key bucket with *every visible key* last:
    rows (B, B + 1) how many query rows saw at least two of those keys; entropy, max_weight and
    logit_sd (B, B + 1, H) sums over those rows, see ``sharpness``.
    """

    layer: int
    buckets: tuple[str, ...]
    q_count: Float
    q_sum: Float
    q_norm: Float
    q_second: Float
    k_count: Float
    k_sum: Float
    k_norm: Float
    rows: Float
    entropy: Float
    max_weight: Float
    logit_sd: Float

    def __post_init__(self) -> None:
        b, h, d = self.q_sum.shape
        k = self.k_sum.shape[1]
        wanted = {
            "q_count": (b,),
            "q_norm": (b, h),
            "q_second": (b, h, d, d),
            "k_count": (b,),
            "k_sum": (b, k, d),
            "k_norm": (b, k),
            "rows": (b, b + 1),
        } | dict.fromkeys(SHARPNESS, (b, b + 1, h))
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")
        if len(self.buckets) != b or h % k:
            raise ValueError(f"{len(self.buckets)} bucket names for {b} buckets, {h} heads over {k} key heads")


def empty_sums(layer: int, buckets: tuple[str, ...], *, heads: int, key_heads: int, width: int) -> HeadSums:
    """Zero sums: B buckets, ``heads`` query heads and ``key_heads`` key heads of ``width``."""
    b, sharp = len(buckets), (len(buckets), len(buckets) + 1, heads)
    return HeadSums(
        layer,
        buckets,
        q_count=np.zeros(b),
        q_sum=np.zeros((b, heads, width)),
        q_norm=np.zeros((b, heads)),
        q_second=np.zeros((b, heads, width, width)),
        k_count=np.zeros(b),
        k_sum=np.zeros((b, key_heads, width)),
        k_norm=np.zeros((b, key_heads)),
        rows=np.zeros(sharp[:2]),
        entropy=np.zeros(sharp),
        max_weight=np.zeros(sharp),
        logit_sd=np.zeros(sharp),
    )


def pack(sums: HeadSums) -> Float:
    """All sums one after the other, (values,), in the order of the fields: one array instead of eleven files."""
    return np.concatenate([getattr(sums, name).ravel() for name in _arrays(sums)])


def unpack(values: Float, layer: int, buckets: tuple[str, ...], *, heads: int, key_heads: int, width: int) -> HeadSums:
    """The inverse of ``pack``."""
    zero = empty_sums(layer, buckets, heads=heads, key_heads=key_heads, width=width)
    shapes = {name: getattr(zero, name).shape for name in _arrays(zero)}
    parts = np.split(values, np.cumsum([int(np.prod(shape)) for shape in shapes.values()])[:-1])
    found = {name: part.reshape(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
    return HeadSums(layer, buckets, **found)


def _arrays(sums: HeadSums) -> list[str]:
    return [field.name for field in fields(sums) if field.name not in ("layer", "buckets")]


def add(a: HeadSums, b: HeadSums) -> HeadSums:
    """Sums over the tokens of both; same layer, buckets and heads, or a ValueError."""
    if (a.layer, a.buckets) != (b.layer, b.buckets):
        raise ValueError(f"layer {a.layer} with {a.buckets} and layer {b.layer} with {b.buckets} do not add")
    return replace(a, **{name: getattr(a, name) + getattr(b, name) for name in _arrays(a)})


def sequence_sums(
    layer: int,
    buckets: tuple[str, ...],
    *,
    query: Float,
    key: Float,
    logits: Float,
    visible: NDArray[np.bool_],
    bucket: NDArray[np.integer],
) -> HeadSums:
    """The sums of one sequence of T tokens.

    query (H, T, d_h), key (K, T, d_h), logits (H, T, T) as the softmax receives them, visible (T, T)
    query by key; bucket (T,) in 0..B-1, or -1 for tokens that belong to none: such a token is no query
    and enters no key mean, but as a key it is among "every visible key".
    """
    b = len(buckets)
    member = bucket[None, :] == np.arange(b)[:, None]
    weight = member.astype(np.float64)
    columns = np.concatenate([member, np.ones((1, len(bucket)), np.bool_)])
    seen = visible.astype(np.float64) @ columns.T  # (T, B + 1)
    usable = seen >= 2
    sharp = [np.where(usable, values, 0.0) for values in _sharpness_by_column(logits, visible, columns, seen)]
    entropy, max_weight, logit_sd = (np.einsum("bt,htc->bch", weight, values) for values in sharp)
    return HeadSums(
        layer,
        buckets,
        q_count=weight.sum(axis=1),
        q_sum=np.einsum("bt,htd->bhd", weight, query),
        q_norm=weight @ np.linalg.norm(query, axis=2).T,
        q_second=np.stack([query[:, m].swapaxes(1, 2) @ query[:, m] for m in member]),
        k_count=weight.sum(axis=1),
        k_sum=np.einsum("bt,htd->bhd", weight, key),
        k_norm=weight @ np.linalg.norm(key, axis=2).T,
        rows=weight @ usable,
        entropy=entropy,
        max_weight=max_weight,
        logit_sd=logit_sd,
    )


def _sharpness_by_column(
    logits: Float, visible: NDArray[np.bool_], columns: NDArray[np.bool_], seen: Float
) -> tuple[Float, Float, Float]:
    """``sharpness`` of every query over each set of keys ``columns`` (C, T), from one exponential: (H, T, C) each.

    Entries with fewer than two visible keys are left undefined.
    """
    top = np.where(visible, logits, -np.inf).max(axis=2, keepdims=True)
    shifted = np.where(visible, logits - top, 0.0)
    raised = np.where(visible, np.exp(shifted), 0.0)
    indicator = columns.T.astype(np.float64)
    total, weighted = raised @ indicator, (raised * shifted) @ indicator
    largest = np.stack([(raised * column).max(axis=2) for column in columns], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = (np.log(total) - weighted / total) / np.log(seen)
        mean = (shifted @ indicator) / seen
        variance = (shifted**2 @ indicator) / seen - mean**2
        result = entropy, largest / total, np.sqrt(np.maximum(variance, 0.0))
    lost = (seen >= 2) & (total == 0)  # every key of the set underflows beside the row's largest logit
    for h, t, c in np.argwhere(lost):
        one = sharpness(logits[h : h + 1, t : t + 1], (visible[t] & columns[c])[None])
        for values, value in zip(result, one, strict=True):
            values[h, t, c] = value[0, 0]
    return result


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
