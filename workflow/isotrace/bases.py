"""Tangent bases of a series: fitted from sealed moments (or rows), written to NetCDF, read back.

Early checkpoints and fit sequences only, as in Bernas et al. 2026; which bases are compared is our choice. A basis
of what a linear map reads, for its weight gradient, stands beside those of the sites, under "site:NAME".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.geometry.bases import Basis
from isotrace.geometry.fits import fit_sites, leave_one_out
from isotrace.geometry.moments import Moments
from isotrace.readers import read_bucket, read_moments, sites_of
from isotrace.store import open_store, read_manifest
from isotrace.weight_moments import input_moments, map_inputs

READ_ROWS = ("semi_nmf",)
"""Methods that need rows and not only moments."""

SiteMoments = dict[str, list[list[Moments]]]


def fit_bases(
    manifests: Sequence[Path], caches: Sequence[Path], spec: dict[str, Any]
) -> tuple[Basis, dict[str, Basis], dict[str, Any]]:
    """The fixed basis of the early checkpoints, those that leave one out, and what the file says of them."""
    sealed = _distinct(manifests)
    ids = [m.stem for m in sealed]
    if len(ids) < 2:
        raise DataError(
            f"only {len(ids)} early checkpoint(s) of {spec['early']} differ and can be read; a basis needs two: "
            f"raise bases.early_fraction or mend the broken ones (see the audit table)"
        )
    by_site = fit_moments(sealed, spec["buckets"])
    if spec["method"] not in READ_ROWS:
        by_site |= input_moments(sealed, spec["buckets"])
    reads = map_inputs(open_store(sealed[0]))
    rows = fit_rows([c for c in caches if c.stem in ids], spec["buckets"]) if caches else None
    settings = {"center": spec["pool_center"], "scale": spec["pool_scale"], "seed": spec["seed"]}
    fixed = fit_sites(spec["method"], "fixed", by_site, spec["rank"], rows_by_site=rows, **settings)
    left_out: dict[str, Basis] = {}
    if "leave_one_out" in spec["kinds"]:
        left_out = leave_one_out(spec["method"], ids, by_site, spec["rank"], rows_by_site=rows, **settings)
    fixed, left_out = _every_map(fixed, reads), {out: _every_map(basis, reads) for out, basis in left_out.items()}
    attributes = {
        "early_checkpoints": " ".join(ids),
        "pool_center": spec["pool_center"],
        "pool_scale": spec["pool_scale"],
    }
    return fixed, left_out, attributes


def _every_map(basis: Basis, reads: Mapping[str, str]) -> Basis:
    """The basis with an entry for every map, those that read the same sharing what was fitted on it once."""
    fitted = {name: i for i, name in enumerate(basis.sites)}
    at = {name: i for name, i in fitted.items() if name not in reads}
    at |= {name: fitted[reader] for name, reader in reads.items() if reader in fitted}
    return _entries(basis, at)


def _entries(basis: Basis, at: Mapping[str, int]) -> Basis:
    """The basis with the entries ``at``, by name."""
    rows = list(at.values())
    taken = (basis.vectors[rows], basis.explained_variance[rows], basis.n_tokens[rows])
    return Basis(basis.kind, basis.method, tuple(at), *taken)


def _distinct(manifests: Sequence[Path]) -> list[Path]:
    """The stores of checkpoints that hold something, copies of the same weights counted once."""
    by_weights: dict[str, Path] = {}
    for manifest in manifests:
        content = read_manifest(manifest)
        if content["status"] == "ok":
            by_weights.setdefault(content["attributes"]["tensors_digest"], manifest)
    return list(by_weights.values())


def moving_basis(manifest: Path, cache: Path | None, method: str, spec: dict[str, Any]) -> Basis:
    """The basis fitted at this very checkpoint, on its fit split; methods that need rows read the cache."""
    moments = fit_moments([manifest], spec["buckets"])
    rows = fit_rows([cache], spec["buckets"]) if cache and method in READ_ROWS else None
    return fit_sites(
        method,
        "moving",
        moments,
        spec["rank_max"],
        center=spec["pool_center"],
        scale=spec["pool_scale"],
        seed=spec["seed"],
        rows_by_site=rows,
    )


def moving_maps(manifest: Path, methods: Sequence[str], spec: dict[str, Any]) -> list[Basis]:
    """The bases of what linear maps read at this very checkpoint, a method each; none where none were captured.

    Methods that need rows are left out: rows of what maps read are not kept.
    """
    reads = map_inputs(open_store(manifest))
    if not reads:
        return []
    moments = input_moments([manifest], spec["buckets"])
    settings = {"center": spec["pool_center"], "scale": spec["pool_scale"], "seed": spec["seed"]}
    fitted = [fit_sites(m, "moving", moments, spec["rank_max"], **settings) for m in methods if m not in READ_ROWS]
    return [_every_map(basis, reads) for basis in fitted]


def joined(basis: Basis, others: Sequence[Basis]) -> Basis:
    """One basis with the entries of several, which differ in their sites only."""
    every = (basis, *others)
    return Basis(
        basis.kind,
        basis.method,
        tuple(site for one in every for site in one.sites),
        np.concatenate([one.vectors for one in every]),
        np.concatenate([one.explained_variance for one in every]),
        np.concatenate([one.n_tokens for one in every]),
    )


def fit_moments(manifests: Iterable[Path], buckets: Sequence[str]) -> SiteMoments:
    """Activation moments of the fit split of sealed stores: site -> one list a checkpoint -> one entry a bucket."""
    by_site: SiteMoments = {}
    for manifest in manifests:
        root = open_store(manifest)
        parts = [read_moments(root, bucket, "fit", "activation") for bucket in buckets]
        for site in sites_of(root):
            by_site.setdefault(site, []).append([part[site] for part in parts if site in part])
    return by_site


def fit_rows(caches: Sequence[Path], buckets: Sequence[str]) -> dict[str, list[NDArray[np.float64]]]:
    """Activation rows of the fit split: site -> one (n, d) array a checkpoint, all buckets."""
    by_site: dict[str, list[NDArray[np.float64]]] = {}
    for manifest in caches:
        root = open_store(manifest)
        parts = [read_bucket(root, bucket, "fit") for bucket in buckets]
        for i, site in enumerate(sites_of(root)):
            by_site.setdefault(site, []).append(np.concatenate([p.activations[i] for p in parts]))
    return by_site


def write_bases(path: Path, fixed: Basis, left_out: dict[str, Basis], attributes: dict[str, Any]) -> None:
    """A basis file: ``basis`` (site, feature, component), and ``leave_one_out`` with a checkpoint dimension.

    Maps, where there are any, in ``map``, ``map_basis`` (map, feature, component) and so on.
    """
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"feature": fixed.vectors.shape[1], "component": fixed.vectors.shape[2]}
        if left_out:
            _names(file, "checkpoint", list(left_out))
        for place, prefix, at in _places(fixed.sites):
            _names(file, place, [fixed.sites[i] for i in at])
            _variable(file, f"{prefix}basis", (place, "feature", "component"), fixed.vectors[at])
            _variable(file, f"{prefix}explained_variance", (place, "component"), fixed.explained_variance[at])
            _variable(file, f"{prefix}n_tokens", (place,), fixed.n_tokens[at])
            if left_out:
                stacked = np.stack([b.vectors[at] for b in left_out.values()])
                _variable(file, f"{prefix}leave_one_out", ("checkpoint", place, "feature", "component"), stacked)
        file.attrs.update({"method": fixed.method, "kind": fixed.kind, **attributes})


def write_moving(path: Path, bases: dict[str, Basis], attributes: dict[str, Any]) -> None:
    """The moving bases of a series: ``basis`` (checkpoint, site, feature, component); maps as in ``write_bases``."""
    first = next(iter(bases.values()))
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"feature": first.vectors.shape[1], "component": first.vectors.shape[2]}
        _names(file, "checkpoint", list(bases))
        for place, prefix, at in _places(first.sites):
            _names(file, place, [first.sites[i] for i in at])
            for name, field, dims in (
                ("basis", "vectors", ("feature", "component")),
                ("explained_variance", "explained_variance", ("component",)),
                ("n_tokens", "n_tokens", ()),
            ):
                values = np.stack([getattr(b, field)[at] for b in bases.values()])
                _variable(file, f"{prefix}{name}", ("checkpoint", place, *dims), values)
        file.attrs.update({"method": first.method, "kind": "moving", **attributes})


def _places(names: Sequence[str]) -> Iterator[tuple[str, str, list[int]]]:
    """The dimension of sites and that of maps, the prefix of their variables, and which entries are theirs."""
    yield "site", "", [i for i, name in enumerate(names) if ":" not in name]
    maps = [i for i, name in enumerate(names) if ":" in name]
    if maps:
        yield "map", "map_", maps


def _names(file: h5netcdf.File, dimension: str, names: Sequence[str]) -> None:
    """A dimension and the strings along it."""
    file.dimensions[dimension] = len(names)
    _variable(file, dimension, (dimension,), np.array(names, dtype=object))


def _variable(file: h5netcdf.File, name: str, dims: tuple[str, ...], values: NDArray[Any]) -> None:
    dtype = h5py.string_dtype() if values.dtype == object else values.dtype
    file.create_variable(name, dims, dtype=dtype, data=values)


def read_bases(path: Path, checkpoint: str, kinds: Sequence[str]) -> list[Basis]:
    """The fixed basis and, for an early checkpoint, the one fitted without it; sites first, then maps."""
    with h5netcdf.File(path, "r") as file:
        places = [("site", ""), ("map", "map_")] if "map" in file.variables else [("site", "")]
        names = tuple(name for place, _ in places for name in _strings(file, place))
        whole = {
            field: np.concatenate([file[f"{prefix}{field}"][...] for _, prefix in places])
            for field in ("basis", "explained_variance", "n_tokens")
        }
        method = str(file.attrs["method"])
        found = []
        if "fixed" in kinds:
            found.append(Basis("fixed", method, names, whole["basis"], whole["explained_variance"], whole["n_tokens"]))
        if "leave_one_out" in kinds and "leave_one_out" in file.variables:
            left_out = _strings(file, "checkpoint")
            if checkpoint in left_out:
                at = left_out.index(checkpoint)
                vectors = np.concatenate([file[f"{prefix}leave_one_out"][at] for _, prefix in places])
                about = (whole["explained_variance"], whole["n_tokens"])
                found.append(Basis("leave_one_out", method, names, vectors, *about))
    return found


def _strings(file: h5netcdf.File, name: str) -> list[str]:
    return [s.decode() if isinstance(s, bytes) else str(s) for s in file[name][...]]
