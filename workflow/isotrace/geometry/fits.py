"""Bases of every site of a model: fixed, moving, and with one checkpoint left out.

Early against late is confounded with the age of the basis, so the moving and left-out fits are our choice of control.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.geometry.bases import Basis
from isotrace.geometry.moments import Moments
from isotrace.geometry.subspaces import Center, Scale, fit_basis, pool
from isotrace.seeding import derived_seed

Array = NDArray[np.float64]
BySite = Mapping[str, Sequence[Sequence[Moments]]]
RowsBySite = Mapping[str, Sequence[Array]]
Item = TypeVar("Item")


def fit_sites(
    method: str,
    kind: str,
    moments_by_site: BySite,
    rank: int,
    *,
    center: Center,
    scale: Scale,
    seed: int,
    rows_by_site: RowsBySite | None = None,
) -> Basis:
    """One basis a site from moments_by_site[site][checkpoint][bucket].

    rows_by_site[site][checkpoint] (n, d) is read by methods that need rows; give them in the order of the
    checkpoints of the moments. A site's fit depends on no other site.
    """
    vectors, variance, n_tokens = [], [], []
    for site, checkpoints in moments_by_site.items():
        pooled = pool(checkpoints, center, scale)
        rows = None if rows_by_site is None else _pooled_rows(rows_by_site[site], center, scale)
        fitted = fit_basis(method, pooled, rank, seed=derived_seed(seed, site), rows=rows)
        vectors.append(fitted[0])
        variance.append(fitted[1])
        n_tokens.append(pooled.n)
    sites = tuple(moments_by_site)
    return Basis(kind, method, sites, np.stack(vectors), np.stack(variance), np.asarray(n_tokens, np.int64))


def leave_one_out(
    method: str,
    checkpoint_ids: Sequence[str],
    moments_by_site: BySite,
    rank: int,
    *,
    center: Center,
    scale: Scale,
    seed: int,
    rows_by_site: RowsBySite | None = None,
) -> dict[str, Basis]:
    """For each checkpoint, the basis of all others; arguments as in ``fit_sites``, checkpoints named in order.

    DataError for fewer than two checkpoints.
    """
    if len(checkpoint_ids) < 2:
        raise DataError("leaving a checkpoint out needs at least two early checkpoints")
    bases = {}
    for out, checkpoint in enumerate(checkpoint_ids):
        moments = {site: _without(listed, out) for site, listed in moments_by_site.items()}
        rows = None if rows_by_site is None else {site: _without(r, out) for site, r in rows_by_site.items()}
        bases[checkpoint] = fit_sites(
            method, "leave_one_out", moments, rank, center=center, scale=scale, seed=seed, rows_by_site=rows
        )
    return bases


def _without(items: Sequence[Item], out: int) -> list[Item]:
    return [item for i, item in enumerate(items) if i != out]


def _pooled_rows(checkpoints: Sequence[Array], center: Center, scale: Scale) -> Array:
    """Rows of all checkpoints under the same switches as ``pool``, but weighted by their number."""
    parts = [np.asarray(rows, np.float64) for rows in checkpoints]
    if scale == "trace":
        parts = [rows / np.sqrt(rows.var(axis=0).sum()) for rows in parts]
    if center == "checkpoint":
        parts = [rows - rows.mean(axis=0) for rows in parts]
    stacked = np.concatenate(parts)
    return np.asarray(stacked - stacked.mean(axis=0))
