"""What is left of a cloud's covariance after subspaces are removed: the tangent, or many random ones at once.

tr and ||.||_F^2 of P C P by expansion, never by building P; the ablation itself is that of Bernas et al. 2026.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.isotropy import Sums, frobenius_ustat, sums
from isotrace.geometry.jackknife import group_labels
from isotrace.geometry.nulls import haar_columns, haar_frames, haar_weights

Array = NDArray[np.float64]

# A share of the variance this small is below the rounding of rows that were stored in float32.
NOTHING = 1e-13
# Below this share of the whole a difference of two sums of squares has lost the digits that a test of it needs.
CANCELLED = 1e-6
LOST = 1e-12


@dataclass(frozen=True)
class Cloud:
    """Centred rows y (n, d) sorted by group, q = |y|^2 (n,), their scatter S (d, d), y S (n, d), slices of the groups.

    base: sums of the whole and with each group left out, (1 + G,).
    """

    y: Array
    q: Array
    pulled: Array
    scatter: Array
    parts: tuple[slice, ...]
    base: Sums

    @property
    def covariance(self) -> Array:
        return self.scatter / (len(self.y) - 1)


@dataclass(frozen=True)
class Outside:
    """Axes (d, m) that diagonalise an operator outside a tangent, its values (m,), its leak into it (m, k)."""

    axes: Array
    values: Array
    leak: Array


def cloud(rows: Array, sequence: NDArray[np.integer], groups: int) -> Cloud:
    """Prepare rows (n, d); sequences (n,) are dealt into ``groups``, or into none if there are too few."""
    label = group_labels(sequence, groups)
    order = np.argsort(label, kind="stable")
    edges = np.searchsorted(label[order], np.arange(int(label.max()) + 2))
    parts = tuple(slice(int(a), int(b)) for a, b in pairwise(edges))
    return _prepared(rows[order], parts if len(parts) == groups else ())


def without(c: Cloud, vectors: Array) -> Cloud:
    """The cloud with span(vectors), (d, k) orthonormal, projected out of its rows.

    What remains of a cloud that lies in the span is rounding, which has a shape of its own: it counts as nothing.
    """
    rows = c.y - (c.y @ vectors) @ vectors.T
    nothing = np.vdot(rows, rows) <= NOTHING * c.q.sum()
    return _prepared(np.zeros_like(rows) if nothing else rows, c.parts)


def _prepared(rows: Array, parts: tuple[slice, ...]) -> Cloud:
    y = rows - rows.mean(axis=0)
    q = np.einsum("ij,ij->i", y, y)
    scatter = y.T @ y
    pulled = y @ scatter
    return Cloud(y, q, pulled, scatter, parts, _leave_out(y, q, pulled, scatter, parts))


def _leave_out(y: Array, q: Array, pulled: Array, scatter: Array, parts: tuple[slice, ...]) -> Sums:
    """Sums of all rows and of all but each group, each about its own mean."""
    n, cube, whole = len(y), q @ y, np.vdot(scatter, scatter)
    along = np.einsum("ij,ij->i", pulled, y)
    found = [(n, q.sum(), whole, q @ q)]
    for part in parts:
        inside, rest = y[part], n - (part.stop - part.start)
        shift = inside.sum(axis=0)
        step = shift / rest
        size = step @ step
        slope = np.square(inside @ step).sum()
        round_trip = step @ pulled[part].sum(axis=0) / rest
        # Sums over what is left of (q + 2 y.step + step^2)^2, y.step summing to -n step^2 there.
        mixed = (cube - q[part] @ inside) @ step
        plain = q.sum() - q[part].sum()
        q4 = q @ q - q[part] @ q[part] + 4 * (round_trip - slope) + 4 * mixed
        q4 += 2 * size * plain - 3 * rest * size**2
        left = whole + _gram_norm(inside) - 2 * along[part].sum() + rest * (rest * size**2 + 2 * slope - 2 * round_trip)
        if left < CANCELLED * whole:
            gone = np.vstack([inside, shift / np.sqrt(rest)])
            left = np.square(scatter - gone.T @ gone).sum()
        found.append((rest, plain - rest * size, left, q4))
    return sums(*np.asarray(found, np.float64).T)


def _gram_norm(rows: Array) -> float:
    """||Y^T Y||_F^2 of rows (n, d), by the smaller of the two Gram matrices."""
    gram = rows @ rows.T if len(rows) < rows.shape[1] else rows.T @ rows
    return float(np.vdot(gram, gram))


def outside(operator: Array, tangent: Array) -> Outside:
    """Diagonalise P C P outside tangent (d, k); k = 0 gives the plain eigenvectors."""
    k = tangent.shape[1]
    across = tangent.T @ operator
    # P C P = C - A - A^T; pushing the tangent below every eigenvalue separates it from the operator's own null space.
    across += (np.trace(operator) * tangent.T - (across @ tangent) @ tangent.T) / 2
    half = tangent @ across
    values, vectors = np.linalg.eigh(operator - (half + half.T))
    axes = vectors[:, k:]
    return Outside(axes, values[k:], axes.T @ (operator @ tangent))


def haar_removed(operator: Array, out: Outside, rank: int, draws: int, seed: int) -> tuple[Array, Array]:
    """tr and ||.||_F^2 (B,) of an operator without each of B Haar subspaces of rank k outside the tangent."""
    weights = haar_weights(out.values.size, rank, draws, seed)
    column, corner = [], []
    for frames in haar_frames(out.values.size, rank, draws, seed):
        turned = frames.swapaxes(1, 2)
        corner.append(np.square(np.matmul(turned, out.values[:, None] * frames)).sum(axis=(1, 2)))
        column.append(np.square(np.matmul(turned, out.leak)).sum(axis=(1, 2)))
    squares = weights @ out.values**2 + np.concatenate(column)
    trace = np.trace(operator) - weights @ out.values
    return trace, np.vdot(operator, operator) - 2 * squares + np.concatenate(corner)


def haar_ustat(c: Cloud, out: Outside, removed: tuple[Array, Array], rank: int, draws: int, seed: int) -> Array:
    """U-statistics (B,) after the removals of ``haar_removed`` from the cloud's own covariance.

    Of the rows only sum |P y|^4 is needed; it enters at order 1/n, so that float32 products are enough.
    """
    n = len(c.y)
    unit = np.sqrt(c.q.mean())
    rows = (c.y @ out.axes / unit).astype(np.float32)
    whole = (c.q / unit**2)[:, None]
    q4 = []
    for frames in haar_columns(out.values.size, rank, draws, seed):
        inside = rows @ frames
        np.square(inside, out=inside)
        q4.append(np.square(whole - inside.reshape(n, rank, -1).sum(axis=1)).sum(axis=0))
    trace, frobenius = removed
    quartic = np.concatenate(q4) * unit**4
    return frobenius_ustat(np.full(draws, float(n)), trace * (n - 1), frobenius * (n - 1) ** 2, quartic)


def first_frames(out: Outside, rank: int, count: int, seed: int) -> Array:
    """The first ``count`` of the draws as frames (count, d, k) in the original axes."""
    return np.concatenate([np.matmul(out.axes, f) for f in haar_frames(out.values.size, rank, count, seed)])


def replicates(c: Cloud, frames: Array) -> Sums:
    """Sums (B, 1 + G) without each frame (B, d, k), for the whole cloud and with each group left out.

    NaN where the group that is left out holds all but a millionth of ||C||_F: the rest is then rounding.
    """
    count, d, k = frames.shape
    n, flat = len(c.y), frames.transpose(1, 0, 2).reshape(d, count * k)
    inside, across = c.y @ flat, c.pulled @ flat
    stacked = inside.reshape(n, count, k).transpose(1, 0, 2)
    core = np.matmul(stacked.swapaxes(1, 2), stacked)
    q = np.maximum(c.q[:, None] - _by_draw(np.square(inside), count), 0)
    turned = np.matmul(stacked, core).transpose(1, 0, 2).reshape(n, count * k)
    along = np.einsum("ij,ij->i", c.pulled, c.y)[:, None] - _by_draw(inside * (2 * across - turned), count)
    state = _Removed(inside, across, core, q, along, q.T @ c.y, _weighted(q, inside, count))
    # ||S Q||^2 = sum over rows of (Q^T y).(Q^T S y), because S is the sum of y y^T.
    whole = c.base.frobenius[0] * (n - 1) ** 2 - 2 * _by_draw(inside * across, count).sum(axis=0) + _corner(core)
    found = [(np.full(count, n), q.sum(axis=0), whole, np.square(q).sum(axis=0))]
    found += [_left_out(c, state, part, whole) for part in c.parts]
    return sums(*(np.stack(column, axis=1) for column in zip(*found, strict=True)))


@dataclass(frozen=True)
class _Removed:
    """Whole-cloud products with B frames Q of rank k, shared by all groups; j runs over B x k.

    inside = Y Q (n, j); across = Y S Q (n, j); core = Q^T S Q (B, k, k); with P the projector off a frame,
    q = |P y|^2 (n, B); along = y P S P y (n, B); cube = sum q y (B, d); slant = sum q Q^T y (B, k).
    """

    inside: Array
    across: Array
    core: Array
    q: Array
    along: Array
    cube: Array
    slant: Array


def _left_out(c: Cloud, r: _Removed, part: slice, whole: Array) -> tuple[Array, Array, Array, Array]:
    """n, tr S, ||S||_F^2 and sum |y|^4 (B,) without one group, after each removal; S about its own mean."""
    count, k = r.slant.shape
    y, u, q = c.y[part], r.inside[part], r.q[part]
    rest = len(c.y) - len(y)
    shift, lean = y.sum(axis=0), u.sum(axis=0).reshape(count, k)
    size = shift @ shift - np.square(lean).sum(axis=1)
    toward = (y @ shift)[:, None] - _by_draw(u * lean.ravel(), count)
    pull = c.pulled[part].sum(axis=0) @ shift
    bent = pull - np.einsum("bk,bk->b", 2 * r.across[part].sum(axis=0).reshape(count, k), lean)
    bent += np.einsum("bk,bkl,bl->b", lean, r.core, lean)
    slope = np.square(toward).sum(axis=0)
    f = whole + _own(y, u, count) - 2 * r.along[part].sum(axis=0)
    f += (size**2 / rest + 2 * slope - 2 * bent) / rest
    plain = r.q.sum(axis=0) - q.sum(axis=0)
    mixed = r.cube @ shift - np.einsum("bk,bk->b", r.slant, lean) - np.einsum("nb,nb->b", q, toward)
    q4 = np.square(r.q).sum(axis=0) - np.square(q).sum(axis=0) + 4 * (bent - slope) / rest**2 + 4 * mixed / rest
    size = size / rest**2
    q4 += 2 * size * plain - 3 * rest * size**2
    return np.full(count, rest), plain - rest * size, np.where(f > LOST * whole, f, np.nan), q4


def _own(y: Array, u: Array, count: int) -> Array:
    """||Y P Y^T||_F^2 (B,) of a group's rows y (n, d), with their coordinates u (n, B k) in what P removes."""
    wide = len(y) < y.shape[1]
    crossed = u * ((y @ y.T) @ u) if wide else np.square(y.T @ u)
    stacked = u.reshape(len(u), count, -1).transpose(1, 0, 2)
    own = _corner(np.matmul(stacked.swapaxes(1, 2), stacked)) + _gram_norm(y)
    return np.asarray(own - 2 * _by_draw(crossed, count).sum(axis=0))


def _by_draw(values: Array, count: int) -> Array:
    """Sum (n, B k) over the k columns of each draw, (n, B); as a product, because k is short."""
    k = values.shape[1] // count
    return np.asarray((values.reshape(-1, k) @ np.ones(k)).reshape(len(values), count))


def _corner(core: Array) -> Array:
    return np.asarray(np.square(core).sum(axis=(1, 2)))


def _weighted(q: Array, inside: Array, count: int) -> Array:
    """sum q Q^T y over rows, (B, k)."""
    return np.asarray(np.einsum("nb,nbk->bk", q, inside.reshape(len(q), count, -1)))
