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


@dataclass(frozen=True)
class Cloud:
    """Centred rows y (n, d) sorted by group, their scatter (d, d), q = |y|^2 (n,), slices of the groups.

    base: sums of the whole and with each group left out, (1 + G,).
    """

    y: Array
    q: Array
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
    return Cloud(y, q, scatter, parts, _leave_out(y, q, scatter, parts))


def _leave_out(y: Array, q: Array, scatter: Array, parts: tuple[slice, ...]) -> Sums:
    """Sums of all rows and of all but each group, each about its own mean."""
    n, cube = len(y), q @ y
    found = [(n, q.sum(), np.vdot(scatter, scatter), q @ q)]
    for part in parts:
        inside, rest = y[part], n - (part.stop - part.start)
        shift = inside.sum(axis=0)
        step = shift / rest
        size = step @ step
        # Sums over what is left of (q + 2 y.step + step^2)^2, y.step summing to -n step^2 there.
        mixed = (cube - q[part] @ inside) @ step
        plain = q.sum() - q[part].sum()
        bent = step @ scatter @ step - np.square(inside @ step).sum()
        q4 = q @ q - q[part] @ q[part] + 4 * bent + 4 * mixed
        q4 += 2 * size * plain - 3 * rest * size**2
        gone = np.vstack([inside, shift / np.sqrt(rest)])
        left = scatter - gone.T @ gone
        found.append((rest, np.trace(left), np.vdot(left, left), q4))
    return sums(*np.asarray(found, np.float64).T)


def outside(operator: Array, tangent: Array) -> Outside:
    """Diagonalise P C P outside tangent (d, k); k = 0 gives the plain eigenvectors."""
    k = tangent.shape[1]
    inside = tangent @ (tangent.T @ operator)
    projected = operator - inside - inside.T + (inside @ tangent) @ tangent.T
    # Pushing the tangent below every eigenvalue separates it from the operator's own null space.
    pushed = (projected + projected.T) / 2 - np.trace(operator) * (tangent @ tangent.T)
    values, vectors = np.linalg.eigh(pushed)
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
    """Sums (B, 1 + G) without each frame (B, d, k), for the whole cloud and with each group left out."""
    count, d, k = frames.shape
    n, flat = len(c.y), frames.transpose(1, 0, 2).reshape(d, count * k)
    pulled, inside = c.scatter @ flat, c.y @ flat
    core = np.matmul(frames.swapaxes(1, 2), pulled.reshape(d, count, k).transpose(1, 0, 2))
    q = np.maximum(c.q[:, None] - _by_draw(np.square(inside), count), 0)
    state = _Removed(frames, flat, pulled, inside, core, q, q.T @ c.y, _weighted(q, inside, count))
    f = c.base.frobenius * (c.base.n - 1) ** 2
    whole = f[0] - 2 * _norm(pulled, count) + _corner(core)
    found = [(np.full(count, n), q.sum(axis=0), whole, np.square(q).sum(axis=0))]
    found += [_left_out(c, state, part, f[1 + i]) for i, part in enumerate(c.parts)]
    return sums(*(np.stack(column, axis=1) for column in zip(*found, strict=True)))


@dataclass(frozen=True)
class _Removed:
    """Whole-cloud products with B frames of rank k, shared by all groups; j runs over B x k.

    frames (B, d, k); flat (d, j); pulled = S Q (d, j); inside = Y Q (n, j); core = Q^T S Q (B, k, k);
    q = |P y|^2 (n, B); cube = sum q y (B, d); slant = sum q Q^T y (B, k).
    """

    frames: Array
    flat: Array
    pulled: Array
    inside: Array
    core: Array
    q: Array
    cube: Array
    slant: Array


def _left_out(c: Cloud, r: _Removed, part: slice, frobenius: float) -> tuple[Array, Array, Array, Array]:
    """n, tr S, ||S||_F^2 and sum |y|^4 (B,) without one group, after each removal; S about its own mean."""
    count, _, k = r.frames.shape
    y, u, q = c.y[part], r.inside[part], r.q[part]
    rest = len(c.y) - len(y)
    shift = y.sum(axis=0)
    along = (shift @ r.flat).reshape(count, k)
    # One more row, the group's sum over the root of what is left, moves the centre to the mean of the rest.
    gone = np.vstack([u, along.ravel() / np.sqrt(rest)])
    pulled = r.pulled - np.vstack([y, shift / np.sqrt(rest)]).T @ gone
    stacked = gone.reshape(len(y) + 1, count, k).transpose(1, 0, 2)
    core = r.core - np.matmul(stacked.swapaxes(1, 2), stacked)
    f = frobenius - 2 * _norm(pulled, count) + _corner(core)
    step = (shift - np.matmul(r.frames, along[:, :, None])[:, :, 0]) / rest
    size = np.einsum("bd,bd->b", step, step)
    plain = r.q.sum(axis=0) - q.sum(axis=0)
    bent = np.einsum("bd,bd->b", step @ c.scatter, step) - np.square(y @ step.T).sum(axis=0)
    mixed = (r.cube - q.T @ y) @ shift - np.einsum("bk,bk->b", r.slant - _weighted(q, u, count), along)
    q4 = np.square(r.q).sum(axis=0) - np.square(q).sum(axis=0) + 4 * bent + 4 * mixed / rest
    q4 += 2 * size * plain - 3 * rest * size**2
    return np.full(count, rest), plain - rest * size, f, q4


def _by_draw(values: Array, count: int) -> Array:
    """Sum (n, B k) over the k columns of each draw, (n, B); as a product, because k is short."""
    k = values.shape[1] // count
    return np.asarray((values.reshape(-1, k) @ np.ones(k)).reshape(len(values), count))


def _norm(values: Array, count: int) -> Array:
    """Squared Frobenius norm a draw of (d, B k), (B,)."""
    return np.asarray(np.einsum("dj,dj->j", values, values).reshape(count, -1).sum(axis=1))


def _corner(core: Array) -> Array:
    return np.asarray(np.square(core).sum(axis=(1, 2)))


def _weighted(q: Array, inside: Array, count: int) -> Array:
    """sum q Q^T y over rows, (B, k)."""
    return np.asarray(np.einsum("nb,nbk->bk", q, inside.reshape(len(q), count, -1)))
