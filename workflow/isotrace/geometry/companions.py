"""The table of companion measures (cosine, spectrum, dimension, norms, loss) of one bucket, one row a number.

Definitions are those of the papers named in ``metrics`` and the modules it calls; the layout is our choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.bases import Basis
from isotrace.geometry.cloud import Cloud, deleted_groups, jackknife_interval
from isotrace.geometry.metrics import METRICS
from isotrace.geometry.rows import Bucket, Quantity
from isotrace.geometry.undefined import Undefined

COLUMNS = ["site", "bucket", "quantity", "n_tokens", "metric", "value", "lo", "hi", "reason"]
NO_INTERVAL = "no interval for this metric"
WIDEST_INTERVAL = 512


def geometry_table(
    bucket: Bucket, bases: Sequence[Basis], spec: Mapping[str, Any], *, previous: Bucket | None = None
) -> pd.DataFrame:
    """One row a site x quantity x metric of ``spec["metrics"]``: value, interval, reason.

    spec: seed, metrics, rank, max_rows_dimension, groups, confidence, min_rows. ``loss`` belongs to no
    site and is given once, at the last; ``displacement_in_tangent`` only with ``previous``, the same
    bucket one checkpoint earlier. A NaN, interval included, has its reason.
    """
    unknown = [name for name in spec["metrics"] if name not in METRICS]
    if unknown:
        raise ConfigError(f"metrics: {unknown[0]!r} is not one of {', '.join(sorted(METRICS))}")
    base = Cloud(np.empty((0, 1)), np.empty(0, np.int64), int(spec["seed"]), int(spec["max_rows_dimension"]))
    base = replace(base, rank=int(spec["rank"]))
    rows: list[dict[str, Any]] = []
    for site in bucket.sites:
        for quantity in get_args(Quantity):
            clouds = {"rows": _rows(bucket, site, quantity, base)}
            if quantity == "activation" and site == bucket.sites[-1]:
                clouds["loss"] = _losses(bucket, base)
            if quantity == "activation" and previous is not None:
                clouds["displacement"] = _displacements(bucket, previous, site, bases, base)
            found = _measured(clouds, quantity, spec)
            rows += [{"site": site, "bucket": bucket.name, "quantity": quantity, **row} for row in found]
    return pd.DataFrame(rows, columns=COLUMNS)


def _measured(clouds: Mapping[str, Cloud], quantity: Quantity, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one site and quantity; the deleted groups of a cloud are shared by its metrics."""
    parts: dict[str, list[Cloud]] = {}
    rows = []
    for name in spec["metrics"]:
        known = METRICS[name]
        if quantity not in known.of or known.reads not in clouds:
            continue
        cloud = clouds[known.reads]
        if known.reads not in parts:
            parts[known.reads] = _parts(cloud, int(spec["groups"]))
        value, lo, hi, reason = _estimate(name, cloud, parts[known.reads], spec)
        rows.append({"n_tokens": cloud.n, "metric": name, "value": value, "lo": lo, "hi": hi, "reason": reason})
    return rows


def _estimate(name: str, cloud: Cloud, parts: list[Cloud], spec: Mapping[str, Any]) -> tuple[float, float, float, str]:
    """(value, lo, hi, reason) of one metric."""
    known, nan = METRICS[name], float("nan")
    if cloud.n < int(spec["min_rows"]) and name != "zero_rows":
        return nan, nan, nan, f"fewer than {spec['min_rows']} rows"
    try:
        value = known.measure(cloud)
    except Undefined as undefined:
        return nan, nan, nan, str(undefined)
    if known.interval == "no":
        return value, nan, nan, NO_INTERVAL
    if known.interval == "narrow" and cloud.d > WIDEST_INTERVAL:
        return value, nan, nan, f"{NO_INTERVAL} beyond width {WIDEST_INTERVAL}"
    if not parts:
        return value, nan, nan, "no interval from one sequence"
    try:
        lo, hi = jackknife_interval(known.measure, cloud, parts, confidence=float(spec["confidence"]))
    except Undefined as undefined:
        return value, nan, nan, f"no interval: {undefined}"
    return value, lo, hi, ""


def _parts(cloud: Cloud, groups: int) -> list[Cloud]:
    try:
        return deleted_groups(cloud, groups)
    except Undefined:
        return []


def _rows(bucket: Bucket, site: str, quantity: Quantity, base: Cloud) -> Cloud:
    rows = bucket.rows(site, quantity)
    values = np.asarray(rows.values, np.float64)
    return replace(base, values=values, sequence=rows.sequence, zero_rows=len(bucket.sequence) - rows.n)


def _losses(bucket: Bucket, base: Cloud) -> Cloud:
    """Losses in nats (n, 1) of the rows that have a target: the masked ones where the objective masks."""
    loss = np.asarray(bucket.loss, np.float64)
    target = np.isfinite(loss) & (bucket.masked if bucket.masked.any() else True)
    return replace(base, values=loss[target, None], sequence=bucket.sequence[target])


def _displacements(bucket: Bucket, previous: Bucket, site: str, bases: Sequence[Basis], base: Cloud) -> Cloud:
    """h(c+1) - h(c) (n, d) of the rows that both checkpoints hold, with the fixed PCA tangent at the site."""
    here, there = _common_rows(bucket, previous)
    fixed = next((b for b in bases if (b.kind, b.method) == ("fixed", "pca") and site in b.sites), None)
    usable = fixed is not None and base.rank <= fixed.vectors.shape[2]
    vectors = fixed.at(site, base.rank) if fixed is not None and usable else None
    if vectors is not None and np.isnan(vectors).any():
        vectors = None
    after, before = bucket.activations[bucket.sites.index(site)], previous.activations[previous.sites.index(site)]
    moved = np.asarray(after[here], np.float64) - np.asarray(before[there], np.float64)
    missing = f"no fixed pca basis of rank {base.rank} at this site"
    return replace(base, values=moved, sequence=bucket.sequence[here], tangent=vectors, tangent_missing=missing)


def _common_rows(bucket: Bucket, previous: Bucket) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Indices of the rows with the same sequence, position and turn (a position may be drawn twice)."""
    keys = []
    for one in (bucket, previous):
        key = pd.DataFrame({"sequence": one.sequence, "position": one.position})
        key["turn"] = key.groupby(["sequence", "position"]).cumcount()
        keys.append(key.reset_index())
    both = keys[0].merge(keys[1], on=["sequence", "position", "turn"], suffixes=("", "_previous"))
    return both["index"].to_numpy(np.intp), both["index_previous"].to_numpy(np.intp)
