"""The table of companion measures (cosine, spectrum, dimension, norms, loss) of one bucket, one row a number.

Definitions are those of the papers named in ``metrics`` and the modules it calls; the layout is our choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.errors import ConfigError
from isotrace.geometry.bases import Basis
from isotrace.geometry.cloud import Cloud, Interval, jackknife
from isotrace.geometry.metrics import METRICS
from isotrace.geometry.rows import Bucket, Quantity, nonzero
from isotrace.geometry.undefined import Undefined

COLUMNS = ["site", "bucket", "quantity", "n_tokens", "metric", "value", "lo", "hi", "reason"]
NO_INTERVAL = "no interval for this metric"
WIDEST_INTERVAL = 512


def geometry_table(
    bucket: Bucket,
    bases: Sequence[Basis],
    spec: Mapping[str, Any],
    *,
    previous: Bucket | None = None,
    refused: str = "",
) -> pd.DataFrame:
    """One row a site x quantity x metric of ``spec["metrics"]``: value, interval, reason.

    spec: seed, metrics, rank, method, max_rows_dimension, groups, confidence, min_rows. ``loss`` belongs to no
    site and is given once, at the last; ``displacement_in_tangent`` only with ``previous``, the same
    bucket one checkpoint earlier, or as NaN with the reason why there is one that is ``refused``. A NaN,
    interval included, has its reason.
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
            if any(METRICS[name].reads == "paired" for name in spec["metrics"]):
                clouds["paired"] = _paired(bucket, site, quantity, clouds["rows"])
            if quantity == "activation" and site == bucket.sites[-1]:
                clouds["loss"] = _losses(bucket, base)
            if quantity == "activation" and previous is not None:
                clouds["displacement"] = _displacements(bucket, previous, site, bases, spec["method"], base)
            elif quantity == "activation" and refused:
                clouds["displacement"] = replace(base, tangent_missing=refused)
            found = _measured(clouds, quantity, spec)
            rows += [{"site": site, "bucket": bucket.name, "quantity": quantity, **row} for row in found]
    return pd.DataFrame(rows, columns=COLUMNS)


def _measured(clouds: Mapping[str, Cloud], quantity: Quantity, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of one site and quantity, in the order of the config's metrics."""
    chosen = [name for name in spec["metrics"] if quantity in METRICS[name].of and METRICS[name].reads in clouds]
    found: dict[str, dict[str, Any]] = {}
    for reads, cloud in clouds.items():
        names = [name for name in chosen if METRICS[name].reads == reads]
        points = {name: _point(name, cloud, int(spec["min_rows"])) for name in names}
        intervals = _intervals(cloud, [name for name, (_, reason) in points.items() if not reason], spec)
        for name, (value, reason) in points.items():
            interval = intervals.get(name, Interval(reason=reason))
            found[name] = {"n_tokens": cloud.n, "metric": name, "value": value, **asdict(interval)}
    return [found[name] for name in chosen]


def _point(name: str, cloud: Cloud, min_rows: int) -> tuple[float, str]:
    """(value, "") or (NaN, reason)."""
    if METRICS[name].reads == "displacement" and cloud.tangent is None:
        return float("nan"), cloud.tangent_missing
    if cloud.n < min_rows and name != "zero_rows":
        return float("nan"), f"fewer than {min_rows} rows"
    try:
        return METRICS[name].measure(cloud), ""
    except Undefined as undefined:
        return float("nan"), str(undefined)


def _intervals(cloud: Cloud, names: Sequence[str], spec: Mapping[str, Any]) -> dict[str, Interval]:
    """The interval of each metric, or why it has none; dear ones only where the cloud is narrow."""
    wide = cloud.d > WIDEST_INTERVAL
    none = {name: Interval(reason=NO_INTERVAL) for name in names if METRICS[name].interval == "no"}
    if wide:
        reason = f"{NO_INTERVAL} beyond width {WIDEST_INTERVAL}"
        none |= {name: Interval(reason=reason) for name in names if METRICS[name].interval == "narrow"}
    measures = {name: METRICS[name].measure for name in names if name not in none}
    if not measures:
        return none
    return none | jackknife(cloud, measures, groups=int(spec["groups"]), confidence=float(spec["confidence"]))


def _rows(bucket: Bucket, site: str, quantity: Quantity, base: Cloud) -> Cloud:
    rows = bucket.rows(site, quantity)
    values = np.asarray(rows.values, np.float64)
    return replace(base, values=values, sequence=rows.sequence, zero_rows=len(bucket.sequence) - rows.n)


def _paired(bucket: Bucket, site: str, quantity: Quantity, rows: Cloud) -> Cloud:
    """The rows of a quantity; of gradients with the activations (n, d) at the same positions."""
    if quantity == "activation":
        return rows
    i = bucket.sites.index(site)
    return replace(rows, places=np.asarray(bucket.activations[i][nonzero(bucket.gradients[i])], np.float64))


def _losses(bucket: Bucket, base: Cloud) -> Cloud:
    """Losses in nats (n, 1) of the rows that have a target: the masked ones where the objective masks."""
    loss = np.asarray(bucket.loss, np.float64)
    target = bucket.has_target
    return replace(base, values=loss[target, None], sequence=bucket.sequence[target])


def _displacements(
    bucket: Bucket, previous: Bucket, site: str, bases: Sequence[Basis], method: str, base: Cloud
) -> Cloud:
    """h(c+1) - h(c) (n, d) of the rows that both checkpoints hold, with the fixed tangent of ``method`` at the site."""
    here, there = _common_rows(bucket, previous)
    fixed = next((b for b in bases if (b.kind, b.method) == ("fixed", method) and site in b.sites), None)
    usable = fixed is not None and base.rank <= fixed.vectors.shape[2]
    vectors = fixed.at(site, base.rank) if fixed is not None and usable else None
    if vectors is not None and np.isnan(vectors).any():
        vectors = None
    after, before = bucket.activations[bucket.sites.index(site)], previous.activations[previous.sites.index(site)]
    moved = np.asarray(after[here], np.float64) - np.asarray(before[there], np.float64)
    missing = f"no fixed {method} basis of rank {base.rank} at this site"
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
