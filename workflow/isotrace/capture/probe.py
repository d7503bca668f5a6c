"""The cheap measures of a model at hand, while it is being trained: a few sequences, everything in memory.

The same functions as the workflow's tables, so that both give the same numbers for the same weights and sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from torch import nn

from isotrace.capture.at_rest import Kept, activations, at_rest, ids_of, of_split
from isotrace.capture.attention import Unavailable, attention_sums
from isotrace.capture.passes import batches
from isotrace.capture.sites import choose, find_sites
from isotrace.capture.trace import trace
from isotrace.corpus.stores import Passes
from isotrace.corpus.tokens import EVAL, FIT
from isotrace.geometry.ablation import isotropy_table
from isotrace.geometry.attention import attention_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.companions import geometry_table
from isotrace.geometry.energy import energy_table
from isotrace.geometry.fits import fit_sites
from isotrace.geometry.moments import moments
from isotrace.geometry.rows import Bucket

METRICS = ["mean_cosine", "norm_drift", "loss"]
_ONE_DRAW = {"draws": 1, "draws_corrected": 1, "null_spaces": ["complement"]}
"""Nulls cost most and change none of the values that a probe logs."""


@dataclass(frozen=True)
class Probe:
    """Sequences and positions that a model is measured on, and how.

    sites: names, None for the usual choice; rank of the moving tangent, fitted on the fit split; groups of the
    jackknife behind the corrected isotropy; below min_rows rows a bucket has no number.
    """

    passes: Passes
    rank: int = 8
    sites: tuple[str, ...] | None = None
    groups: int = 20
    min_rows: int = 32
    batch_size: int = 16
    seed: int = 0

    def measure(self, model: nn.Module) -> dict[str, float]:
        """``{measure}/{site}`` (drift_q, drift_k, sharpness and loss without a site) of the model as it is.

        Means over buckets; energy_ratio is their geometric mean. What has no number (too few rows, no readable
        attention) is left out. The model keeps its mode, its gradients and what of it is trained.
        """
        with at_rest(model):
            every = find_sites(model)
            sites = {name: every[name] for name in choose(list(every), list(self.sites) if self.sites else None)}
            tangent = self._tangent(model, sites)
            found = self._tables(model, sites, tangent)
            try:
                return found | self._attention(model)
            except Unavailable:
                return found

    @cached_property
    def buckets(self) -> list[str]:
        """Names of the buckets that the sample has."""
        return [f"b{i}" for i in range(int(self.passes.rows["bucket"].max()) + 1)]

    @cached_property
    def _by_split(self) -> dict[int, Passes]:
        return {split: of_split(self.passes, split) for split in (FIT, EVAL)}

    def _tangent(self, model: nn.Module, sites: Mapping[str, nn.Module]) -> Basis:
        """The moving tangent basis of every site, from activations of the fit split; no backward pass."""
        passes = self._by_split[FIT]
        bucket = passes.rows["bucket"]
        rows = activations(model, sites, passes, self.batch_size).values["activation"]
        fitted = {
            site: [[moments(rows[i, bucket == b]) for b in range(len(self.buckets))]] for i, site in enumerate(sites)
        }
        return fit_sites("pca", "moving", fitted, self.rank, center="global", scale="none", seed=self.seed)

    def _tables(self, model: nn.Module, sites: Mapping[str, nn.Module], tangent: Basis) -> dict[str, float]:
        passes = self._by_split[EVAL]
        kept = Kept(passes, list(sites))
        for batch in batches(passes, self.batch_size):
            one = trace(model, sites, *ids_of(passes, batch, model))
            kept.add(batch, "activation", one.activations)
            kept.add(batch, "gradient", one.gradients)
            kept.losses[batch.rows] = batch.pick(one.losses).cpu().numpy()
        parts = [_measured(kept.bucket(name, b), tangent, self._spec) for b, name in enumerate(self.buckets)]
        return _over_buckets(pd.concat(parts))

    @property
    def _spec(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "rank": self.rank,
            "ranks": [self.rank],
            "groups": self.groups,
            "min_rows": self.min_rows,
            "confidence": 0.95,
        }

    def _attention(self, model: nn.Module) -> dict[str, float]:
        passes = self._by_split[EVAL]
        bucket = passes.bucket_of[passes.originals].copy()
        if passes.exclude_first:
            bucket[:, 0] = -1
        sums = attention_sums(model, passes.inputs, bucket, tuple(self.buckets), batch_size=self.batch_size)
        table = attention_table(sums).query("query_bucket == 'all' and key_bucket == 'all'")
        means = table[["drift_q", "drift_k", "entropy"]].mean()
        return {"drift_q": float(means["drift_q"]), "drift_k": float(means["drift_k"])} | {
            "sharpness": 1 - float(means["entropy"])
        }


def _measured(bucket: Bucket, tangent: Basis, spec: dict[str, Any]) -> pd.DataFrame:
    """site, measure, value of one bucket."""
    geometry = geometry_table(bucket, [], {**spec, "metrics": METRICS, "method": "pca", "max_rows_dimension": 100})
    geometry = geometry[geometry["quantity"] == "activation"].rename(columns={"metric": "measure"})
    plain = {"estimators": ["corrected"], "c0": [], "conventions": ["ambient"], "outliers": ["kept"]}
    whole = {**spec, **_ONE_DRAW, **plain, "outlier_threshold": 10.0, "shrinkage": 0.0, "order": "shrink_then_remove"}
    isotropy = isotropy_table(bucket, [tangent], whole, pooled={})
    isotropy = isotropy.assign(measure="isotropy_" + isotropy["quantity"], value=isotropy["score"])
    draws = {**_ONE_DRAW, "draws": {"complement": 1}, "resamples": 20, "centred": False}
    energy = energy_table(bucket, [tangent], {**spec, **draws}, variance={})
    energy = energy[energy["quantity"] == "gradient"].assign(measure="energy_ratio")
    energy["value"] = energy["ratio"]
    return pd.concat([t[["site", "measure", "value"]] for t in (geometry, isotropy, energy)])


def _over_buckets(rows: pd.DataFrame) -> dict[str, float]:
    found = {}
    for (measure, site), part in rows.groupby(["measure", "site"], sort=True):
        values = part["value"].to_numpy(float)
        if np.isfinite(values).all():
            log = measure == "energy_ratio"
            name = "loss" if measure == "loss" else f"{measure}/{site}"
            found[name] = float(np.exp(np.log(values).mean()) if log else values.mean())
    return found
