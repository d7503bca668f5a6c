"""Sums over tokens from which a head's drift, alignment and sharpness follow; they add over sequences.

Godey, de la Clergerie, Sagot 2024 (drift of queries and keys, entropy); queries and keys are post-RoPE.
"""

from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.sharpness import sharpness_by_bucket

Float = NDArray[np.float64]

SHARPNESS = ("entropy", "max_weight", "logit_sd")


@dataclass(frozen=True)
class HeadSums:
    """Float64 sums over the tokens of one layer; H query heads, K key heads (H a multiple of K), B buckets.

    q_count (B,), q_sum (B, H, d_h), q_norm (B, H) sum of |q|, q_second (B, H, d_h, d_h) sum of q q^T, or
    (B, H, 0, 0) where it is not kept; k_count (B,), k_sum (B, K, d_h), k_norm (B, K): by the bucket of the
    query's or key's token. Sharpness by query bucket and, on the second axis, key bucket with *every visible key* last:
    rows (B, B + 1) how many query rows saw at least two of those keys; entropy, max_weight and
    logit_sd (B, B + 1, H) sums over those rows, see ``sharpness.sharpness``. Of the query rows that saw at least two
    keys: mass (B, B, H) sum of the attention weight that a key bucket received, share (B, B) sum of its share of the
    visible keys.
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
    mass: Float
    share: Float

    def __post_init__(self) -> None:
        b, h, d = self.q_sum.shape
        k = self.k_sum.shape[1]
        wanted = {
            "q_count": (b,),
            "q_norm": (b, h),
            "q_second": (b, h, d, d) if self.q_second.size else (b, h, 0, 0),
            "k_count": (b,),
            "k_sum": (b, k, d),
            "k_norm": (b, k),
            "rows": (b, b + 1),
            "mass": (b, b, h),
            "share": (b, b),
        } | dict.fromkeys(SHARPNESS, (b, b + 1, h))
        for name, shape in wanted.items():
            if getattr(self, name).shape != shape:
                raise ValueError(f"{name} has shape {getattr(self, name).shape}, not {shape}")
        if len(self.buckets) != b or h % k:
            raise ValueError(f"{len(self.buckets)} bucket names for {b} buckets, {h} heads over {k} key heads")


def empty_sums(
    layer: int, buckets: tuple[str, ...], *, heads: int, key_heads: int, width: int, second: bool = True
) -> HeadSums:
    """Zero sums: B buckets, ``heads`` query heads and ``key_heads`` key heads of ``width``."""
    b, sharp = len(buckets), (len(buckets), len(buckets) + 1, heads)
    kept = width if second else 0
    return HeadSums(
        layer,
        buckets,
        q_count=np.zeros(b),
        q_sum=np.zeros((b, heads, width)),
        q_norm=np.zeros((b, heads)),
        q_second=np.zeros((b, heads, kept, kept)),
        k_count=np.zeros(b),
        k_sum=np.zeros((b, key_heads, width)),
        k_norm=np.zeros((b, key_heads)),
        rows=np.zeros(sharp[:2]),
        entropy=np.zeros(sharp),
        max_weight=np.zeros(sharp),
        logit_sd=np.zeros(sharp),
        mass=np.zeros((b, b, heads)),
        share=np.zeros((b, b)),
    )


def pack(sums: HeadSums) -> Float:
    """All sums one after the other, (values,), in the order of the fields: one array instead of a file each."""
    return np.concatenate([getattr(sums, name).ravel() for name in _arrays(sums)])


def unpack(
    values: Float,
    layer: int,
    buckets: tuple[str, ...],
    *,
    heads: int,
    key_heads: int,
    width: int,
    second: bool = True,
) -> HeadSums:
    """The inverse of ``pack``; without ``second``, of sums that do not keep it."""
    zero = empty_sums(layer, buckets, heads=heads, key_heads=key_heads, width=width, second=second)
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


def token_sums(
    layer: int, buckets: tuple[str, ...], *, query: Float, key: Float, bucket: NDArray[np.integer]
) -> HeadSums:
    """The sums over queries (H, T, d_h) and keys (K, T, d_h) of one sequence, without sharpness.

    bucket (T,) in 0..B-1, or -1 for tokens that belong to none: such a token is no query and enters no key mean.
    """
    member = bucket[None, :] == np.arange(len(buckets))[:, None]
    weight = member.astype(np.float64)
    shape = {"heads": len(query), "key_heads": len(key), "width": query.shape[2]}
    return replace(
        empty_sums(layer, buckets, **shape),
        q_count=weight.sum(axis=1),
        q_sum=np.einsum("bt,htd->bhd", weight, query),
        q_norm=weight @ np.linalg.norm(query, axis=2).T,
        q_second=np.stack([query[:, m].swapaxes(1, 2) @ query[:, m] for m in member]),
        k_count=weight.sum(axis=1),
        k_sum=np.einsum("bt,htd->bhd", weight, key),
        k_norm=weight @ np.linalg.norm(key, axis=2).T,
    )


def row_sums(
    sums: HeadSums,
    *,
    logits: Float,
    visible: NDArray[np.bool_],
    query_bucket: NDArray[np.integer],
    key_bucket: NDArray[np.integer],
) -> HeadSums:
    """``sums`` and the sharpness of R query rows of one sequence over its T keys.

    logits (H, R, T) as the softmax receives them, visible (R, T); buckets (R,) and (T,) as in ``token_sums``. A key
    of no bucket, a sink among them, is one of "every visible key".
    """
    weight = (query_bucket[None, :] == np.arange(len(sums.buckets))[:, None]).astype(np.float64)
    found = sharpness_by_bucket(logits, visible, key_bucket, len(sums.buckets))
    usable = found.seen >= 2
    weighed = weight * usable[:, -1]  # rows with two visible keys
    share = found.seen[:, :-1] / np.maximum(found.seen[:, -1:], 1)
    sharp = {name: _by_bucket(weight, np.where(usable, getattr(found, name), 0.0)) for name in SHARPNESS}
    more = sharp | {"mass": _by_bucket(weighed, found.mass), "share": weighed @ share, "rows": weight @ usable}
    return replace(sums, **{name: getattr(sums, name) + one for name, one in more.items()})


def _by_bucket(weight: Float, values: Float) -> Float:
    """Values (H, R, C) of query rows added up by bucket, (B, C, H), weight (B, R)."""
    return (weight @ values).transpose(1, 2, 0)


def without_second(sums: HeadSums) -> HeadSums:
    """The sums without the second moments of queries, which take most of their memory."""
    b, h, _ = sums.q_sum.shape
    return replace(sums, q_second=np.zeros((b, h, 0, 0)))


def less(whole: HeadSums, part: HeadSums) -> HeadSums:
    """The sums over the tokens of ``whole`` that are not in ``part``, neither with second moments."""
    return replace(whole, **{name: getattr(whole, name) - getattr(part, name) for name in _arrays(whole)})


@dataclass(frozen=True)
class Grouped:
    """The sums of one layer over all tokens, and of each group of sequences without second moments."""

    total: HeadSums
    groups: tuple[HeadSums, ...]
