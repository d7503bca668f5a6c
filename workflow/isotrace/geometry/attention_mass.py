"""Are frequent tokens sinks: the attention that a bucket's keys receive, against their share of what is visible.

Sinks after Xiao et al. 2024; the ratio to uniform attention over the same keys is our choice.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.attention import ALL, all_once, with_all
from isotrace.geometry.attention_intervals import ALONE, FEW
from isotrace.geometry.head_sums import Grouped, HeadSums, less, without_second
from isotrace.geometry.jackknife import margins

Float = NDArray[np.float64]

NONE = "none"
"""Keys of no bucket: the first position where it is excluded, special tokens, a learned sink."""
COLUMNS = ["layer", "head", "query_bucket", "key_bucket", "mass", "share", "log_ratio", "lo", "hi", "reason"]


def attention_mass(layers: Iterable[Grouped], confidence: float) -> pd.DataFrame:
    """One row a layer, head, query bucket (the last ``all``) and key bucket (the last ``none``).

    mass: attention weight of these keys, mean over query rows that see two keys; share: what uniform attention would
    give them; log_ratio ln(mass / share), lo and hi by leaving out a group of sequences at a time.
    """
    frames = [_layer(one, confidence) for one in layers]
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def _layer(sums: Grouped, confidence: float) -> pd.DataFrame:
    whole = without_second(sums.total)
    mass, share = _mass_and_share(whole)
    value, margin = _log_ratio(mass, share), np.full(mass.shape, np.nan)
    if len(sums.groups) > 1:
        left = [_log_ratio(*_mass_and_share(less(whole, group))) for group in sums.groups]
        with np.errstate(invalid="ignore"):
            margin = margins(np.stack(left), confidence)
    axes = [range(mass.shape[0]), [*whole.buckets, ALL], [*whole.buckets, NONE]]
    frame = pd.MultiIndex.from_product(axes, names=["head", "query_bucket", "key_bucket"]).to_frame(index=False)
    frame = frame.assign(layer=whole.layer, mass=mass.ravel(), share=share.ravel(), log_ratio=value.ravel())
    frame = frame.assign(lo=(value - margin).ravel(), hi=(value + margin).ravel())
    reasons = [
        (frame["lo"].isna(), ALONE if len(sums.groups) > 1 else FEW),
        (frame["mass"] == 0, "these keys receive no attention"),
        (frame["share"] == 0, "no query sees one of these keys"),
        (frame["share"].isna(), "no query of this bucket sees two keys"),
    ]
    frame["reason"] = ""
    for where, reason in reasons:
        frame.loc[where, "reason"] = reason
    return all_once(frame)[COLUMNS]


def _mass_and_share(sums: HeadSums) -> tuple[Float, Float]:
    """Means (H, query buckets + 1, key buckets + 1) over query rows; NaN where there is none."""
    with np.errstate(invalid="ignore"):
        rows = with_all(sums.rows)[:, -1:]
        mass = (with_all(sums.mass) / rows[:, :, None]).transpose(2, 0, 1)
        share = np.broadcast_to(with_all(sums.share) / rows, mass.shape)
    return _with_rest(mass), _with_rest(share)


def _with_rest(part: Float) -> Float:
    """Parts of one (..., B) and what is left of it, to rounding."""
    rest = 1 - part.sum(axis=-1, keepdims=True)
    return np.concatenate([part, np.where(np.abs(rest) < 1e-9, 0.0, rest)], axis=-1)


def _log_ratio(mass: Float, share: Float) -> Float:
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(mass) - np.log(share)
    return np.where(np.isfinite(found), found, np.nan)
