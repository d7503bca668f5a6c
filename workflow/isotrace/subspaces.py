"""How a model's tangent bases compare: by method, over training, by bucket, by half of the fit sequences, locally.

Which comparisons are made is our choice; every one stands beside what a Haar subspace would show.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import pandas as pd
import zarr
from numpy.typing import NDArray

from isotrace.bases import READ_ROWS, read_bases
from isotrace.errors import DataError
from isotrace.geometry.fits import fit_sites
from isotrace.geometry.local_tangents import local_tangents
from isotrace.geometry.moments import Moments, moments
from isotrace.geometry.overlap import MEASURES, Overlap, mean_overlap, subspace_overlap
from isotrace.geometry.undefined import Undefined
from isotrace.readers import read_moments, sites_of
from isotrace.seeding import generator
from isotrace.store import open_store
from isotrace.stored_rows import SPLITS, read_rows

Array = NDArray[np.float64]
Frames = Mapping[str, Array]
"""Orthonormal frames (d, rank) by site; NaN columns where the data determine fewer."""

COLUMNS = ["checkpoint", "site", "comparison", "method", "other", "rank", *MEASURES, "n_nulls", "reason"]


@dataclass(frozen=True)
class Fitted:
    """What a model's subspaces are read from.

    fixed: frames of every method, controls among them; moving: by method and checkpoint, in order of steps;
    moments, caches: open stores of the checkpoints behind the fixed basis (``early``), as far as they were given.
    """

    fixed: Mapping[str, Frames]
    moving: Mapping[str, Mapping[str, Frames]]
    early: Sequence[str]
    moments: Sequence[zarr.Group]
    caches: Sequence[zarr.Group]

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites, by depth."""
        return tuple(next(iter(self.fixed.values())))


@dataclass(frozen=True)
class _Part:
    """The fit rows of one bucket of one cache, read a site at a time; sequence (n,)."""

    group: Any
    sites: tuple[str, ...]
    keep: NDArray[np.bool_]
    sequence: NDArray[np.integer]

    @classmethod
    def of(cls, cache: zarr.Group, bucket: str) -> "_Part":
        group: Any = cache[bucket]
        keep = group["split"][...] == SPLITS["fit"]
        return cls(group, sites_of(cache), keep, group["sequence"][...][keep])

    def rows(self, site: int) -> Array:
        """Activations (n, d) of the site of that index."""
        return np.asarray(read_rows(self.group, "activations", site)[self.keep], np.float64)


@dataclass(frozen=True)
class Pair:
    """Two sets of frames to compare; checkpoint "" where they belong to no single one."""

    comparison: str
    method: str
    other: str
    first: Frames
    second: Frames
    checkpoint: str = ""


def read_fitted(
    bases: Sequence[Path], moving: Sequence[Path], moments: Sequence[Path], caches: Sequence[Path]
) -> Fitted:
    """Open basis files; of the early checkpoints' stores those stay that the fixed basis was fitted on."""
    fixed: dict[str, Frames] = {}
    for path in bases:
        [found] = read_bases(path, "", ["fixed"])
        fixed[found.method] = {s: found.vectors[i] for i, s in enumerate(found.sites) if ":" not in s}
    early = fitted_on(bases[0])
    by_id = [{path.stem: path for path in paths} for paths in (moments, caches)]
    stores = [[open_store(found[name]) for name in early if name in found] for found in by_id]
    return Fitted(fixed, dict(map(_read_moving, moving)), early, *stores)


def fitted_on(bases: Path) -> list[str]:
    """The early checkpoints that a fixed basis was fitted on, in order of steps."""
    with h5netcdf.File(bases, "r") as file:
        return str(file.attrs["early_checkpoints"]).split()


def _read_moving(path: Path) -> tuple[str, dict[str, Frames]]:
    """The method of a file of moving bases, and its frames by checkpoint."""
    with h5netcdf.File(path, "r") as file:
        sites, ids = (
            [s.decode() if isinstance(s, bytes) else str(s) for s in file[n][...]] for n in ("site", "checkpoint")
        )
        vectors = file["basis"][...]
        method = str(file.attrs["method"])
    return method, {name: dict(zip(sites, vectors[c], strict=True)) for c, name in enumerate(ids)}


def subspace_table(fitted: Fitted, spec: Mapping[str, Any]) -> pd.DataFrame:
    """Every comparison asked for, a row a site and rank; no row of a site that one side lacks.

    spec: comparisons, methods, ranks, rank_max, buckets, pool_center, pool_scale, seed, draws, neighbours, points.
    """
    made = []
    for pair in _pairs(fitted, spec):
        for site in [s for s in pair.first if s in pair.second]:
            for rank in spec["ranks"]:
                measure = partial(subspace_overlap, pair.first[site][:, :rank], pair.second[site][:, :rank])
                known = (pair.checkpoint, site, pair.comparison, pair.method, pair.other, rank)
                made.append(_row(known, measure, spec))
    if "local" in spec["comparisons"]:
        made += _local(fitted, spec)
    return pd.DataFrame(made, columns=COLUMNS)


def _row(known: tuple[Any, ...], measure: Callable[..., Overlap], spec: Mapping[str, Any]) -> dict[str, Any]:
    """One row: the first columns, then what was measured or why it was not."""
    row = dict(zip(COLUMNS, known, strict=False))
    try:
        return row | asdict(measure(draws=spec["draws"], seed=spec["seed"])) | {"reason": ""}
    except Undefined as undefined:
        return row | dict.fromkeys(MEASURES, np.nan) | {"n_nulls": 0, "reason": str(undefined)}


def _pairs(fitted: Fitted, spec: Mapping[str, Any]) -> Iterator[Pair]:
    """What is compared with what; local tangents aside, which are many frames against one."""
    wanted = spec["comparisons"]
    if "methods" in wanted:
        for one, other in combinations(fitted.fixed, 2):
            yield Pair("methods", one, other, fitted.fixed[one], fitted.fixed[other])
    for method, moving in fitted.moving.items():
        if "moving_to_fixed" in wanted:
            for checkpoint, found in moving.items():
                yield Pair("moving_to_fixed", method, "fixed", found, fitted.fixed[method], checkpoint)
        if "neighbours" in wanted:
            for before, checkpoint in pairwise(moving):
                yield Pair("neighbours", method, before, moving[checkpoint], moving[before], checkpoint)
    if "buckets" in wanted:
        for bucket in spec["buckets"]:
            of_bucket = [read_moments(store, bucket, "fit", "activation") for store in fitted.moments]
            for method in spec["methods"]:
                alone = _of_bucket(fitted, method, bucket, of_bucket, spec)
                yield Pair("buckets", method, bucket, alone, fitted.fixed[method])
    if "halves" in wanted:
        for method in spec["methods"]:
            yield Pair("halves", method, "other half", *_of_halves(fitted, method, spec))


def _of_bucket(
    fitted: Fitted, method: str, bucket: str, of_bucket: Sequence[Mapping[str, Moments]], spec: Mapping[str, Any]
) -> Frames:
    """The fixed basis as it would be, had there been the rows of one bucket only."""
    parts = [_Part.of(cache, bucket) for cache in fitted.caches] if method in READ_ROWS else []
    frames = {}
    for i, site in enumerate(fitted.sites):
        listed = [[found[site]] if site in found else [] for found in of_bucket]
        frames[site] = _fit(method, site, listed, spec, [part.rows(i) for part in parts])
    return frames


def _of_halves(fitted: Fitted, method: str, spec: Mapping[str, Any]) -> tuple[Frames, Frames]:
    """The fixed basis from each half of the fit sequences, the same halves at every checkpoint and bucket."""
    opened = [[_Part.of(cache, bucket) for bucket in spec["buckets"]] for cache in fitted.caches]
    first = half_of(np.concatenate([part.sequence for parts in opened for part in parts]), spec["seed"])
    halves: tuple[dict[str, Array], dict[str, Array]] = ({}, {})
    for i, site in enumerate(fitted.sites):
        rows = [[(part.rows(i), np.isin(part.sequence, first)) for part in parts] for parts in opened]
        for frames, mine in zip(halves, (True, False), strict=True):
            kept = [[values[inside == mine] for values, inside in parts] for parts in rows]
            listed = [[moments(values) for values in parts if len(values)] for parts in kept]
            frames[site] = _fit(method, site, listed, spec, [np.concatenate(parts) for parts in kept])
    return halves


def half_of(sequences: NDArray[np.integer], seed: int) -> NDArray[np.integer]:
    """Half of the distinct ids, drawn by the seed."""
    distinct = np.unique(sequences)
    drawn: NDArray[np.integer] = generator(seed, "halves").permutation(distinct)[: len(distinct) // 2]
    return drawn


def _fit(method: str, site: str, listed: list[list[Moments]], spec: Mapping[str, Any], rows: Sequence[Array]) -> Array:
    """The frame (d, rank_max) of one site; all NaN where a checkpoint has no row to fit on."""
    settings = {"center": spec["pool_center"], "scale": spec["pool_scale"], "seed": spec["seed"]}
    by_site = {site: rows} if method in READ_ROWS else None
    try:
        fitted = fit_sites(method, "fixed", {site: listed}, spec["rank_max"], rows_by_site=by_site, **settings)
    except DataError:
        width = next((m.d for parts in listed for m in parts), spec["rank_max"])
        return np.full((width, spec["rank_max"]), np.nan)
    return fitted.at(site, spec["rank_max"])


def _local(fitted: Fitted, spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Local tangents of the last early checkpoint against its series' fixed bases, controls among them."""
    parts = [_Part.of(fitted.caches[-1], bucket) for bucket in spec["buckets"]]
    about = {name: spec[name] for name in ("neighbours", "points", "seed")}
    for i, site in enumerate(fitted.sites):
        tangents: Array | str
        try:
            tangents = local_tangents(np.concatenate([part.rows(i) for part in parts]), rank=spec["rank_max"], **about)
        except Undefined as undefined:
            tangents = str(undefined)
        for rank, (method, frames) in product(spec["ranks"], fitted.fixed.items()):
            known = (fitted.early[-1], site, "local", method, "local tangents", rank)
            yield _row(known, partial(_against_local, tangents, frames[site][:, :rank]), spec)


def _against_local(tangents: Array | str, basis: Array, *, draws: int, seed: int) -> Overlap:
    """The mean overlap of a basis (d, k) with those of the tangents (p, d, rank_max) that span k directions."""
    if isinstance(tangents, str):
        raise Undefined(tangents)
    k = basis.shape[1]
    whole = [frame for frame in tangents[:, :, :k] if np.isfinite(frame).all()]
    if 2 * len(whole) < len(tangents):
        raise Undefined(f"{len(whole)} of {len(tangents)} neighbourhoods span {k} directions, fewer than half")
    return mean_overlap(whole, basis, draws=draws, seed=seed)
