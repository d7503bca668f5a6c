"""From sealed stores to the plain arrays that ``geometry`` works on.

The thin labelled layer: names and dimensions are resolved here, numbers are made elsewhere.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from isotrace.geometry.head_sums import Grouped, unpack
from isotrace.geometry.moments import Moments
from isotrace.geometry.rows import Bucket, Quantity, Rows, has_target
from isotrace.geometry.subspaces import pool
from isotrace.geometry.summed import BucketMoments
from isotrace.store import open_store, read_manifest
from isotrace.stored_rows import SPLITS, read_rows


def sites_of(root: zarr.Group) -> tuple[str, ...]:
    """Site names of a cache or moments store, in order of depth."""
    first: Any = root[min(root.group_keys())]
    return tuple(str(s) for s in first["site"][...])


def model_sites(manifest: Path) -> tuple[str, ...]:
    """Every site the captured model has, read or not; none for a tombstone."""
    return tuple(read_manifest(manifest)["attributes"].get("model_sites", ()))


def missing_of(manifest: Path) -> dict[str, str]:
    """What a store lacks from the beginning, with the reason; nothing for a captured one."""
    return dict(read_manifest(manifest)["attributes"].get("missing", {}))


def read_bucket(root: zarr.Group, name: str, split: str) -> Bucket:
    """One bucket's rows of one split, every site."""
    group: Any = root[name]
    keep = group["split"][...] == SPLITS[split]
    at = {k: group[k][...][keep] for k in ("token_id", "sequence", "position", "loss", "masked")}
    return Bucket(
        name=name,
        sites=tuple(str(s) for s in group["site"][...]),
        activations=read_rows(group, "activations")[:, keep],
        gradients=read_rows(group, "gradients")[:, keep],
        **at,
    )


def fit_sequences(root: zarr.Group, buckets: Sequence[str]) -> NDArray[np.integer]:
    """Every sequence of the fit split, in whichever bucket its rows are."""
    groups: list[Any] = [root[bucket] for bucket in buckets]
    return np.unique(np.concatenate([g["sequence"][...][g["split"][...] == SPLITS["fit"]] for g in groups]))


def mean_loss(root: zarr.Group, buckets: Sequence[str]) -> float:
    """The mean over buckets of the mean loss of their evaluation rows, in nats; NaN where no row has one."""
    means = []
    for bucket in buckets:
        group: Any = root[bucket]
        loss, masked = (group[k][...][group["split"][...] == SPLITS["eval"]] for k in ("loss", "masked"))
        means += [float(loss[keep].mean(dtype=np.float64))] if (keep := has_target(loss, masked)).any() else []
    return float(np.mean(means)) if means else float("nan")


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


def read_bucket_moments(root: zarr.Group, bucket: str) -> BucketMoments:
    """One bucket of a moments store of every evaluation token; a site and quantity is read when asked for.

    Groups come one after the other, none of them held; one without rows has n = 0.
    """
    group: Any = root[bucket]
    sites, quantities, splits = ([str(x) for x in group[k][...]] for k in ("site", "quantity", "split"))

    def whole(site: str, quantity: Quantity) -> Moments:
        at = (splits.index("eval"), quantities.index(quantity), sites.index(site))
        mean, scatter, q3 = (np.asarray(group[k][at], np.float64) for k in ("mean", "scatter", "q3"))
        return Moments(int(group["n"][at]), mean, scatter, q3, float(group["q4"][at]))

    def groups(site: str, quantity: Quantity) -> Iterator[Moments]:
        at = (quantities.index(quantity), sites.index(site))
        for g, sums in enumerate(group["group_sums"][:, *at]):
            (n, q4), (mean, q3) = sums[:2], np.split(sums[2:], 2)
            yield Moments(int(n), mean, np.asarray(group["group_scatter"][g, *at], np.float64), q3, float(q4))

    return BucketMoments(bucket, tuple(sites), whole, groups)


def pooled_covariance(root: zarr.Group, buckets: Sequence[str]) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Covariance over all buckets' evaluation rows, weighted equally, by (site, quantity): what star shrinks to."""
    pooled: dict[tuple[str, str], NDArray[np.float64]] = {}
    for quantity in ("activation", "gradient"):
        parts = [read_moments(root, bucket, "eval", quantity) for bucket in buckets]
        for site in sites_of(root):
            found = [part[site] for part in parts if site in part and part[site].n > 1]
            if found:
                pooled[site, quantity] = pool([found]).covariance
    return pooled


def read_contextual(root: zarr.Group, buckets: Sequence[str]) -> dict[str, Rows]:
    """Evaluation activations of all buckets together, by site; where the model saw the token, not a mask."""
    parts = [read_bucket(root, bucket, "eval") for bucket in buckets]
    seen = [~p.masked for p in parts]
    sequence, token_id = (
        np.concatenate([getattr(p, k)[s] for p, s in zip(parts, seen, strict=True)]) for k in ("sequence", "token_id")
    )
    return {
        site: Rows(np.concatenate([p.activations[i, s] for p, s in zip(parts, seen, strict=True)]), sequence, token_id)
        for i, site in enumerate(parts[0].sites)
    }


def read_heads(manifest: Path) -> list[Grouped]:
    """Attention sums of every layer, whole and by group of sequences, by depth."""
    root: Any = open_store(manifest)
    found = []
    for name in (n for n in root.array_keys() if n.startswith("sums")):
        about = root[name].attrs
        shape = {key: about[key] for key in ("heads", "key_heads", "width")}
        buckets = tuple(about["buckets"])
        by_group = root[name.replace("sums", "groups")][...]
        for row, layer, parts in zip(root[name][...], about["layers"], by_group, strict=True):
            groups = tuple(unpack(part, layer, buckets, second=False, **shape) for part in parts)
            found.append(Grouped(unpack(row, layer, buckets, **shape), groups))
    return sorted(found, key=lambda sums: sums.total.layer)
