"""Why a cloud of activations is narrow: what each possible cause leaves in the tables, where it is asked for.
Mean direction and drift as in Godey et al. 2024; what counts as likely is our choice, in the config."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from isotrace.card.findings import Finding
from isotrace.card.readings import How, Tables, of_activations, of_model
from isotrace.figures import frames

Answer = Literal["likely", "unlikely", "unknown"]
CLOUD = ("mean_cosine", "isotropy", "norm_drift", "outlier_norm")
NARROW = 0.1
"""Below this mean cosine there is no common direction to explain."""


@dataclass(frozen=True)
class Cause:
    """A possible cause: whether it is likely, and the numbers that say so."""

    name: str
    answer: Answer
    evidence: str
    look: str


@dataclass(frozen=True)
class Place:
    """Where causes are asked for: a site at a checkpoint, and why there."""

    site: str
    checkpoint: str
    step: int
    why: str


def place_of(found: Iterable[Finding]) -> Place | None:
    """The newest checkpoint where a measure of the cloud is beyond its threshold there, else where it was narrowest.

    The site is where the mean cosine is judged, or the other measure's worst one. None where nothing was measured.
    """
    cloud = [f for name in CLOUD for f in found if f.measure.name == name and f.worst is not None]
    cloud = sorted(cloud, key=lambda f: f.onset is None)
    if not cloud or cloud[0].worst is None:
        return None
    first = cloud[0]
    worst = cloud[0].worst
    values = worst["value"].to_numpy(float) * (-1 if first.measure.falls else 1)
    row = worst.iloc[-1 if first.onset else int(np.argmax(values))]
    named = first.measure.title.lower()
    why = f"{named} is beyond its threshold now" if first.onset else f"{named} was at its worst"
    return Place(str(row["site"]), str(row["checkpoint"]), int(row["step"]), why)


def causes(tables: Tables, model: str, found: list[Finding], place: Place, how: How) -> list[Cause]:
    """The four causes, likely ones first."""
    limits: Mapping[str, float] = how["causes"]
    asked = [
        _mean_direction(tables, model, place, limits["mean_share"]),
        _frequency(tables, model, found, place, limits["bucket_gap"]),
        _outliers(tables, model, found, place, how),
        _attention(found, place, limits["attention_drift"]),
    ]
    return sorted(asked, key=lambda c: ("likely", "unknown", "unlikely").index(c.answer))


def _answer(likely: bool) -> Answer:
    return "likely" if likely else "unlikely"


def _at(tables: Tables, model: str, place: Place, metric: str) -> pd.Series:
    """A metric by bucket at the place, most frequent first; buckets without a value are left out."""
    rows = of_activations(tables, model, metric)
    rows = frames.pick(rows, site=place.site, checkpoint=place.checkpoint) if len(rows) else rows
    if rows.empty:
        return pd.Series(dtype=float)
    values = rows.set_index("bucket")["value"].dropna()
    return values.loc[sorted(values.index, key=frames.natural)]


def _mean_direction(tables: Tables, model: str, place: Place, share: float) -> Cause:
    cosine = float(_at(tables, model, place, "mean_cosine").mean())
    centred = float(_at(tables, model, place, "mean_cosine_centred").mean())
    look = "whether the task needs the mean (subtract it, score again); figure component_tokens for what it may encode"
    if not np.isfinite([cosine, centred]).all():
        reason = "needs mean_cosine and mean_cosine_centred in geometry.metrics, with values here"
        return Cause("a common mean direction", "unknown", reason, look)
    taken = 1 - max(centred, 0.0) / cosine if cosine > 0 else 0.0
    told = f"mean cosine {cosine:.2f}, {round(centred, 2) + 0.0:.2f} once the mean is subtracted"
    likely = cosine > NARROW and taken >= share
    told += f": centring takes {100 * taken:.0f} % of it away" if cosine > NARROW else ": no common direction"
    return Cause("a common mean direction", _answer(likely), told, look)


def _frequency(tables: Tables, model: str, found: list[Finding], place: Place, gap: float) -> Cause:
    look = "figure frequency_geometry; the measures of single buckets in table geometry"
    told, likely = [], []
    bias = next(f for f in found if f.measure.name == "frequency_bias")
    then = _then(bias, place)
    if then is not None:
        told.append(f"rank correlation of frequency with norm or distance, without its sign: {then['value']:.2f}")
        likely.append(bool(then["value"] > bias.watch))
    by_bucket = _at(tables, model, place, "mean_cosine")
    if len(by_bucket) > 1:
        ends = f"{by_bucket.index[0]} {by_bucket.iloc[0]:.2f}, {by_bucket.index[-1]} {by_bucket.iloc[-1]:.2f}"
        told.append(f"mean cosine from frequent to rare: {ends}")
        likely.append(bool(abs(by_bucket.iloc[0] - by_bucket.iloc[-1]) >= gap))
    if not told:
        return Cause("token frequency", "unknown", "needs buckets of tokens, or table frequency with values", look)
    return Cause("token frequency", _answer(any(likely)), "; ".join(told), look)


def _outliers(tables: Tables, model: str, found: list[Finding], place: Place, how: How) -> Cause:
    look = "the coordinates of largest second moment; figure alternatives; scores with outliers: dropped"
    told, likely = [], []
    wanted = {"basis": "fixed", "method": how["method"], "rank": how["rank"], "quantity": "activation"}
    rows = of_model(tables, "controls", model, site=place.site, checkpoint=place.checkpoint, **wanted)
    if len(rows):
        kept, dropped = (_geometric(rows[name]) for name in ("ratio", "ratio_outliers_dropped"))
        if np.isfinite([kept, dropped]).all():
            told.append(f"energy ratio of activations {kept:.3g}, {dropped:.3g} without the outlier dimensions")
            likely.append(kept > 1 and dropped / kept <= 1 - how["causes"]["outlier_share"])
    norm = next(f for f in found if f.measure.name == "outlier_norm")
    then = _then(norm, place)
    if then is not None:
        told.append(f"largest over median norm {then['value']:.3g} at {then['site']}")
        likely.append(bool(then["value"] > norm.watch))
    if not told:
        reason = "needs table controls, or max_over_median_norm, with values here"
        return Cause("outlier dimensions", "unknown", reason, look)
    return Cause("outlier dimensions", _answer(any(likely)), "; ".join(told), look)


def _geometric(values: pd.Series) -> float:
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.exp(np.log(values.to_numpy(float)).mean()))


def _attention(found: list[Finding], place: Place, limit: float) -> Cause:
    look = "figure attention_over_training: whether queries and keys drift before the cosine rises, and in which layer"
    drift = next(f for f in found if f.measure.name == "attention_drift")
    then = _then(drift, place)
    if then is None:
        reason = drift.reason or "no attention at that checkpoint"
        return Cause("drift of queries and keys", "unknown", reason, look)
    told = f"drift of queries and keys {then['value']:.2f} at {then['site']}, where it is largest"
    return Cause("drift of queries and keys", _answer(bool(then["value"] > limit)), told, look)


def _then(finding: Finding, place: Place) -> pd.Series | None:
    """The worst site of a finding at the checkpoint of the place."""
    if finding.worst is None:
        return None
    rows = finding.worst[finding.worst["checkpoint"] == place.checkpoint]
    return rows.iloc[0] if len(rows) else None
