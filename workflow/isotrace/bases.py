"""Tangent bases of a series: fitted from sealed moments (or rows), written to NetCDF, read back.

Early checkpoints and fit sequences only, as in Bernas et al. 2026; which bases are compared is our choice.
"""

from collections.abc import Iterable, Sequence
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
    rows = fit_rows([c for c in caches if c.stem in ids], spec["buckets"]) if caches else None
    settings = {"center": spec["pool_center"], "scale": spec["pool_scale"], "seed": spec["seed"]}
    fixed = fit_sites(spec["method"], "fixed", by_site, spec["rank"], rows_by_site=rows, **settings)
    left_out: dict[str, Basis] = {}
    if "leave_one_out" in spec["kinds"]:
        left_out = leave_one_out(spec["method"], ids, by_site, spec["rank"], rows_by_site=rows, **settings)
    attributes = {
        "early_checkpoints": " ".join(ids),
        "pool_center": spec["pool_center"],
        "pool_scale": spec["pool_scale"],
    }
    return fixed, left_out, attributes


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
    """A basis file: ``basis`` (site, feature, component), and ``leave_one_out`` with a checkpoint dimension."""
    sites, d, k = fixed.vectors.shape
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"site": sites, "feature": d, "component": k}
        _variable(file, "site", ("site",), np.array(fixed.sites, dtype=object))
        _variable(file, "basis", ("site", "feature", "component"), fixed.vectors)
        _variable(file, "explained_variance", ("site", "component"), fixed.explained_variance)
        _variable(file, "n_tokens", ("site",), fixed.n_tokens)
        if left_out:
            file.dimensions["checkpoint"] = len(left_out)
            _variable(file, "checkpoint", ("checkpoint",), np.array(list(left_out), dtype=object))
            stacked = np.stack([b.vectors for b in left_out.values()])
            _variable(file, "leave_one_out", ("checkpoint", "site", "feature", "component"), stacked)
        file.attrs.update({"method": fixed.method, "kind": fixed.kind, **attributes})


def write_moving(path: Path, bases: dict[str, Basis], attributes: dict[str, Any]) -> None:
    """The moving bases of a series: ``basis`` (checkpoint, site, feature, component)."""
    first = next(iter(bases.values()))
    sites, d, k = first.vectors.shape
    with h5netcdf.File(path, "w") as file:
        file.dimensions = {"checkpoint": len(bases), "site": sites, "feature": d, "component": k}
        _variable(file, "checkpoint", ("checkpoint",), np.array(list(bases), dtype=object))
        _variable(file, "site", ("site",), np.array(first.sites, dtype=object))
        for name, dims in (
            ("vectors", ("checkpoint", "site", "feature", "component")),
            ("explained_variance", ("checkpoint", "site", "component")),
            ("n_tokens", ("checkpoint", "site")),
        ):
            values = np.stack([getattr(b, name) for b in bases.values()])
            _variable(file, "basis" if name == "vectors" else name, dims, values)
        file.attrs.update({"method": first.method, "kind": "moving", **attributes})


def _variable(file: h5netcdf.File, name: str, dims: tuple[str, ...], values: NDArray[Any]) -> None:
    dtype = h5py.string_dtype() if values.dtype == object else values.dtype
    file.create_variable(name, dims, dtype=dtype, data=values)


def read_bases(path: Path, checkpoint: str, kinds: Sequence[str]) -> list[Basis]:
    """The fixed basis and, for an early checkpoint, the one fitted without it."""
    with h5netcdf.File(path, "r") as file:
        sites = tuple(s.decode() if isinstance(s, bytes) else str(s) for s in file["site"][...])
        variance, n_tokens = file["explained_variance"][...], file["n_tokens"][...]
        method = str(file.attrs["method"])
        found = []
        if "fixed" in kinds:
            found.append(Basis("fixed", method, sites, file["basis"][...], variance, n_tokens))
        if "leave_one_out" in kinds and "leave_one_out" in file.variables:
            left_out = [s.decode() if isinstance(s, bytes) else str(s) for s in file["checkpoint"][...]]
            if checkpoint in left_out:
                vectors = file["leave_one_out"][left_out.index(checkpoint)]
                found.append(Basis("leave_one_out", method, sites, vectors, variance, n_tokens))
    return found
