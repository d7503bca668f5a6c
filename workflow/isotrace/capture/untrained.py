"""Untrained models of an architecture, measured at the sampled evaluation positions that its checkpoints are.

Mean cosine by depth over several draws of the weights: Godey et al. 2024; which measures are taken is our choice.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from isotrace.capture.at_rest import evaluated
from isotrace.capture.device import place, repeatable
from isotrace.checkpoints.initialise import initial_model
from isotrace.corpus.stores import read_passes
from isotrace.geometry.companions import geometry_table
from isotrace.geometry.isotropy import isoscore_corrected
from isotrace.geometry.rows import Bucket

METRICS = ["mean_cosine", "mean_cosine_centred", "angular_distance", "norm_drift"]
ISOTROPY = "isoscore_corrected"


def untrained_table(like: Path, sample: Path, spec: dict[str, Any]) -> tuple[pd.DataFrame, list[str]]:
    """draw, site, bucket, n_tokens, metric, value, lo, hi, reason, and the names of all sites.

    like: a config.json, or the audit of a checkpoint whose folder holds one. spec: ``seeds`` (the draws),
    ``objective``, ``modules``, ``sites``, ``batch_size``, ``buckets``, ``dtype``, ``device``, ``threads`` and, as for
    table geometry, ``seed``, ``rank``, ``method``, ``max_rows_dimension``, ``groups``, ``confidence``, ``min_rows``.
    """
    repeatable(spec["threads"])
    passes = read_passes(sample)
    names: list[str] = []
    parts: list[pd.DataFrame] = []
    how = {name: spec[name] for name in ("sites", "modules", "batch_size", "buckets")}
    for draw in spec["seeds"]:
        names, buckets = evaluated(_drawn(_config(like), draw, spec), passes, **how)
        parts += [part.assign(draw=draw) for bucket in buckets for part in _measured(bucket, spec)]
    return pd.concat(parts, ignore_index=True), names


def _config(like: Path) -> Path:
    if like.name == "config.json":
        return like
    return Path(json.loads(like.read_text(encoding="utf-8"))["source"]["path"]) / "config.json"


def _drawn(config: Path, draw: int, spec: dict[str, Any]) -> nn.Module:
    """In the dtype that checkpoints are captured in."""
    import torch

    model = initial_model(config, spec["objective"], None, draw)
    return place(model.to(getattr(torch, spec["dtype"])), spec["device"])


def _measured(bucket: Bucket, spec: dict[str, Any]) -> Iterator[pd.DataFrame]:
    found = geometry_table(bucket, [], {**spec, "metrics": METRICS})
    yield found[found["quantity"] == "activation"].drop(columns="quantity")
    rows = [{"site": site, **_isotropy(bucket, site, spec)} for site in bucket.sites]
    yield pd.DataFrame(rows).assign(bucket=bucket.name, metric=ISOTROPY)


def _isotropy(bucket: Bucket, site: str, spec: dict[str, Any]) -> dict[str, Any]:
    rows = bucket.rows(site, "activation")
    few = rows.n < spec["min_rows"]
    nothing = {"value": np.nan, "lo": np.nan, "hi": np.nan}
    if few:
        return {"n_tokens": rows.n, **nothing, "reason": f"{rows.n} rows, fewer than min_rows {spec['min_rows']}"}
    how = {"groups": spec["groups"], "confidence": spec["confidence"]}
    found = vars(isoscore_corrected(rows.values, rows.sequence, **how))
    reason = "" if np.isfinite(list(found.values())).all() else "the corrected score of so few rows is undefined"
    return {"n_tokens": rows.n, **found, "reason": reason}
