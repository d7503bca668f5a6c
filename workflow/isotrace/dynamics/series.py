"""Series over the checkpoints of one run: values with intervals, drawn again within them.

Checkpoints of a run read the same sequences; drawing them independently is conservative for slopes and contrasts.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.dynamics.measures import Measure

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Series:
    """Values (c,) at checkpoints (c,) of one model, site, bucket; natural logs where the measure is a ratio.

    lo and hi are NaN where the table has no interval; step is in optimizer steps, phase early | mid | late.
    """

    model: str
    site: str
    bucket: str
    step: NDArray[np.int64]
    phase: NDArray[np.str_]
    value: Float
    lo: Float
    hi: Float

    @property
    def x(self) -> Float:
        """log10(1 + step): training time as the tests see it."""
        return np.asarray(np.log10(1 + self.step.astype(float)))

    @property
    def has_interval(self) -> bool:
        return bool(len(self.value) and np.all(np.isfinite(self.lo) & np.isfinite(self.hi)))

    def draws(self, n: int, rng: np.random.Generator, *, confidence: float) -> Float:
        """n series (n, c) with each value moved by its own error, one normal half on each side of it."""
        from scipy.special import ndtri

        z = ndtri(0.5 + confidence / 2)
        noise = rng.standard_normal((n, len(self.value)))
        up, down = np.maximum(self.hi - self.value, 0), np.maximum(self.value - self.lo, 0)
        return np.asarray(self.value + noise * np.where(noise > 0, up, down) / z)


def _placed(cells: pd.DataFrame, apart: str) -> pd.DataFrame:
    """Cells with a site and a bucket: attention layers are their block, tables without buckets have ``all``.

    ``apart``: a head is a site of its own, ``block.2.head.3``; a query or key bucket is the bucket.
    """
    if "site" in cells:
        return cells if "bucket" in cells else cells.assign(bucket="all")
    layer = "block." + cells["layer"].astype(str)
    if apart == "head":
        return cells.assign(site=layer + ".head." + cells["head"].astype(str), bucket="all")
    if not apart:
        return cells.assign(site=layer, bucket="all")
    return cells.assign(site=layer, bucket=cells[apart])[~cells[apart].isin(["all", "none"])]


def block_of(site: str) -> str:
    """The block of a head's site; any other site as it is."""
    return site.partition(".head.")[0]


def build(cells: pd.DataFrame, measure: Measure, apart: str = "") -> list[Series]:
    """One series a model, site and bucket, heads averaged unless ``apart``; checkpoints without a value left out."""
    values = ["estimate", "lo", "hi"]
    cells = _placed(cells, apart)
    if measure.log:
        cells = cells.assign(**{v: np.log(cells[v].astype(float).where(cells[v].astype(float) > 0)) for v in values})
    keys = ["model", "site", "bucket"]
    heads = cells.groupby([*keys, "step", "phase"], sort=True)[values].mean().reset_index()
    found = []
    for (model, site, bucket), part in heads[heads["estimate"].notna()].groupby(keys, sort=True):
        part = part.sort_values("step")
        arrays = [part[v].to_numpy(float) for v in values]
        found.append(
            Series(str(model), str(site), str(bucket), part["step"].to_numpy(int), part["phase"].to_numpy(str), *arrays)
        )
    return found


def mean_series(parts: Iterable[Series], *, site: str, bucket: str) -> Series | None:
    """The mean of a model's series at the checkpoints that all of them have; bounds as if errors were shared."""
    members = list(parts)
    if not members:
        return None
    steps = sorted(set.intersection(*(set(s.step.tolist()) for s in members)))
    rows = [np.searchsorted(s.step, steps) for s in members]
    value, lo, hi = (
        np.mean([getattr(s, name)[i] for s, i in zip(members, rows, strict=True)], axis=0)
        for name in ("value", "lo", "hi")
    )
    return Series(members[0].model, site, bucket, np.array(steps, int), members[0].phase[rows[0]], value, lo, hi)


def with_bucket_means(series: list[Series]) -> list[Series]:
    """The series and, where a site has several buckets, their mean as the bucket ``all``."""
    means = []
    for model, site in sorted({(s.model, s.site) for s in series}):
        parts = [s for s in series if (s.model, s.site) == (model, site)]
        if len(parts) > 1:
            means.append(mean_series(parts, site=site, bucket="all"))
    return [*series, *(m for m in means if m is not None and len(m.step))]


def run_means(series: list[Series]) -> list[Series]:
    """One series a model: the mean over all its sites and buckets."""
    models = sorted({s.model for s in series})
    means = (mean_series([s for s in series if s.model == m], site="all", bucket="all") for m in models)
    return [m for m in means if m is not None and len(m.step)]
