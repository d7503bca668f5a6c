"""From sealed stores and basis files to the plain arrays that ``geometry`` works on, and back.

The thin labelled layer: names and dimensions are resolved here, numbers are made elsewhere.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5netcdf
import h5py
import numpy as np
import zarr

from isotrace.geometry.bases import Basis
from isotrace.geometry.moments import Moments
from isotrace.errors import DataError
from isotrace.geometry.fits import fit_sites, leave_one_out
from isotrace.geometry.head_sums import HEAD_DIMENSIONS, HeadSums
from isotrace.geometry.rows import Bucket, Rows
from isotrace.geometry.subspaces import pool
from isotrace.store import is_tombstone, open_store, read_manifest

SPLITS = {"fit": 0, "eval": 1}
READ_ROWS = ("semi_nmf",)
SiteMoments = dict[str, list[list[Moments]]]


def sites_of(root: zarr.Group) -> tuple[str, ...]:
    """Site names of a cache or moments store, in order of depth."""
    first = next(iter(sorted(root.group_keys())))
    return tuple(str(s) for s in root[first]["site"][...])  # type: ignore[index,union-attr]


def model_sites(manifest: Path) -> tuple[str, ...]:
    """Every site the captured model has, read or not; none for a tombstone."""
    return tuple(read_manifest(manifest)["attributes"].get("model_sites", ()))


def read_bucket(root: zarr.Group, name: str, split: str) -> Bucket:
    """One bucket's rows of one split, every site."""
    group: Any = root[name]
    keep = group["split"][...] == SPLITS[split]
    at = {k: group[k][...][keep] for k in ("token_id", "sequence", "position", "loss", "masked")}
    return Bucket(
        name=name,
        sites=tuple(str(s) for s in group["site"][...]),
        activations=group["activations"][...][:, keep],
        gradients=group["gradients"][...][:, keep],
        **at,
    )


def read_moments(root: zarr.Group, bucket: str, split: str, quantity: str) -> dict[str, Moments]:
    """Moments of one bucket by site; sites without a row are left out."""
    group: Any = root[bucket]
    s = [str(x) for x in group["split"][...]].index(split)
    q = [str(x) for x in group["quantity"][...]].index(quantity)
    n, q4 = group["n"][s, q], group["q4"][s, q]
    mean, scatter, q3 = (np.asarray(group[k][s, q], np.float64) for k in ("mean", "scatter", "q3"))
    sites = [str(x) for x in group["site"][...]]
    return {
        site: Moments(int(n[i]), mean[i], scatter[i], q3[i], float(q4[i])) for i, site in enumerate(sites) if n[i] > 0
    }


def pooled_covariance(root: zarr.Group, buckets: Sequence[str]) -> dict[tuple[str, str], np.ndarray]:
    """Covariance over all buckets' evaluation rows, weighted equally, by (site, quantity): what star shrinks to."""
    pooled: dict[tuple[str, str], np.ndarray] = {}
    for quantity in ("activation", "gradient"):
        parts = [read_moments(root, bucket, "eval", quantity) for bucket in buckets]
        for site in sites_of(root):
            found = [part[site] for part in parts if site in part and part[site].n > 1]
            if found:
                pooled[site, quantity] = pool([found]).covariance
    return pooled


def fit_moments(manifests: Iterable[Path], buckets: Sequence[str]) -> SiteMoments:
    """Activation moments of the fit split: site -> one list a checkpoint -> one entry a bucket."""
    by_site: SiteMoments = {}
    for manifest in manifests:
        if is_tombstone(manifest):
            continue
        root = open_store(manifest)
        parts = [read_moments(root, bucket, "fit", "activation") for bucket in buckets]
        for site in sites_of(root):
            by_site.setdefault(site, []).append([part[site] for part in parts if site in part])
    return by_site


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


def _variable(file: h5netcdf.File, name: str, dims: tuple[str, ...], values: np.ndarray) -> None:
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


@dataclass(frozen=True)
class Analysed:
    """What an analysis of one checkpoint reads: the open stores and every basis to compare."""

    cache: zarr.Group | None
    moments: zarr.Group | None
    bases: list[Basis]
    sites: tuple[str, ...]

    @classmethod
    def open(cls, inputs: Any, spec: dict[str, Any], buckets: Sequence[str]) -> "Analysed":
        """Open the inputs of a rule, checking the buckets it reads; a tombstone opens as nothing."""
        manifest, moments = Path(inputs.cache), Path(inputs.moments)
        if is_tombstone(manifest):
            return cls(None, None, [], ())
        checkpoint = manifest.stem
        bases = [basis for path in inputs.bases for basis in read_bases(Path(path), checkpoint, spec["kinds"])]
        if "moving" in spec["kinds"]:
            bases += [moving_basis(moments, manifest, method, spec) for method in spec["methods"]]
        return cls(open_store(manifest, tuple(buckets)), open_store(moments), bases, model_sites(manifest))


def read_previous(manifests: Sequence[str], bucket: str) -> Bucket | None:
    """The same bucket at the checkpoint before, None for the first checkpoint and after a tombstone."""
    found = [Path(m) for m in manifests if not is_tombstone(Path(m))]
    return read_bucket(open_store(found[0], (bucket,)), bucket, "eval") if found else None


def fit_bases(
    manifests: Sequence[Path], caches: Sequence[Path], spec: dict[str, Any]
) -> tuple[Basis, dict[str, Basis], dict[str, Any]]:
    """The fixed basis of the early checkpoints, those that leave one out, and what the file says of them."""
    sealed = [m for m in manifests if not is_tombstone(m)]
    ids = [m.stem for m in sealed]
    if len(ids) < 2:
        raise DataError(
            f"only {len(ids)} early checkpoint(s) of {spec['early']} can be read; a basis needs two: "
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


def fit_rows(caches: Sequence[Path], buckets: Sequence[str]) -> dict[str, list[np.ndarray]]:
    """Activation rows of the fit split: site -> one (n, d) array a checkpoint, all buckets."""
    by_site: dict[str, list[np.ndarray]] = {}
    for manifest in caches:
        root = open_store(manifest)
        parts = [read_bucket(root, bucket, "fit") for bucket in buckets]
        for i, site in enumerate(sites_of(root)):
            by_site.setdefault(site, []).append(np.concatenate([p.activations[i] for p in parts]))
    return by_site


def read_contextual(root: zarr.Group, buckets: Sequence[str]) -> dict[str, Rows]:
    """Evaluation activations of all buckets together, by site."""
    parts = [read_bucket(root, bucket, "eval") for bucket in buckets]
    sequence, token_id = (np.concatenate([getattr(p, k) for p in parts]) for k in ("sequence", "token_id"))
    return {
        site: Rows(np.concatenate([p.activations[i] for p in parts]), sequence, token_id)
        for i, site in enumerate(parts[0].sites)
    }


def read_heads(manifest: Path) -> list[HeadSums]:
    """Attention sums of every layer, by depth."""
    root: Any = open_store(manifest)
    groups = sorted((root[name] for name in root.group_keys()), key=lambda group: group.attrs["layer"])
    return [
        HeadSums(int(g.attrs["layer"]), tuple(g.attrs["buckets"]), **{name: g[name][...] for name in HEAD_DIMENSIONS})
        for g in groups
    ]
