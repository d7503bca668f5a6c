"""From a model and a sample to the two stores of a checkpoint: rows (cache) and their moments.

One pass over the sampled sequences serves every bucket; loading a model a bucket would only repeat the work.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import zarr
from numpy.typing import NDArray
from torch import nn

from isotrace.capture.trace import as_tensor, trace
from isotrace.geometry.head_sums import HEAD_DIMENSIONS, HeadSums
from isotrace.geometry.moments import moments
from isotrace.geometry.rows import nonzero
from isotrace.store import put

SPLITS = ("fit", "eval")
QUANTITIES = ("activation", "gradient")
COORDINATES = ("token_id", "sequence", "draw", "position", "target_id", "masked", "split")


@dataclass(frozen=True)
class Captured:
    """Sampled rows of one checkpoint: activations, gradients (site, n, d) float32; loss (n,) in nats."""

    sites: tuple[str, ...]
    activations: NDArray[np.float32]
    gradients: NDArray[np.float32]
    loss: NDArray[np.float32]


def collect(
    model: nn.Module,
    sites: Mapping[str, nn.Module],
    inputs: NDArray[np.integer],
    targets: NDArray[np.integer],
    where: tuple[NDArray[np.integer], NDArray[np.integer]],
    *,
    batch_size: int,
) -> Captured:
    """Run all passes (p, T) and keep the rows at ``where`` = (pass (n,), position (n,)), sorted by pass."""
    passes, positions = where
    device = next(model.parameters()).device
    n, names = len(passes), tuple(sites)
    kept: Captured | None = None
    for start in range(0, len(inputs), batch_size):
        batch = slice(start, start + batch_size)
        one = trace(model, sites, as_tensor(inputs[batch], device), as_tensor(targets[batch], device))
        rows = np.flatnonzero((passes >= start) & (passes < start + batch_size))
        at = (as_tensor(passes[rows] - start, device), as_tensor(positions[rows], device))
        if kept is None:
            kept = _empty(names, n, one.activations[names[0]].shape[-1])
        for i, name in enumerate(names):
            kept.activations[i, rows] = one.activations[name][at].cpu().numpy()
            kept.gradients[i, rows] = one.gradients[name][at].cpu().numpy()
        kept.loss[rows] = one.losses[at].cpu().numpy()
    assert kept is not None
    return kept


def _empty(names: tuple[str, ...], n: int, width: int) -> Captured:
    shape = (len(names), n, width)
    return Captured(names, np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(n, np.float32))


def write_cache(
    group: zarr.Group, captured: Captured, rows: NDArray[np.bool_], sample: Mapping[str, np.ndarray]
) -> None:
    """Write one bucket's rows (n,) and their coordinates."""
    put(group, "site", np.array(captured.sites), ("site",))
    for name in COORDINATES:
        put(group, name, sample[name][rows], ("token",))
    put(group, "loss", captured.loss[rows], ("token",), units="nats")
    names = " ".join((*COORDINATES, "loss"))
    for name, values in (("activations", captured.activations), ("gradients", captured.gradients)):
        put(group, name, values[:, rows], ("site", "token", "feature"), coordinates=names)


def write_moments(group: zarr.Group, captured: Captured, rows: NDArray[np.bool_], split: NDArray[np.integer]) -> None:
    """Write one bucket's moments over (split, quantity, site) from exactly the rows in the cache."""
    shape = (len(SPLITS), len(QUANTITIES), len(captured.sites))
    d = captured.activations.shape[2]
    n, q4 = np.zeros(shape, np.int64), np.zeros(shape)
    mean, q3 = np.zeros((*shape, d), np.float32), np.zeros((*shape, d), np.float32)
    scatter = np.zeros((*shape, d, d), np.float32)
    for s, q, i in np.ndindex(shape):
        values = (captured.activations, captured.gradients)[q][i][rows & (split == s)].astype(np.float64)
        if QUANTITIES[q] == "gradient":
            values = values[nonzero(values)]
        if len(values):
            m = moments(values)
            n[s, q, i], mean[s, q, i], scatter[s, q, i], q3[s, q, i], q4[s, q, i] = m.n, m.mean, m.scatter, m.q3, m.q4
    dims = ("split", "quantity", "site")
    put(group, "split", np.array(SPLITS), ("split",))
    put(group, "quantity", np.array(QUANTITIES), ("quantity",))
    put(group, "site", np.array(captured.sites), ("site",))
    put(group, "n", n, dims)
    put(group, "mean", mean, (*dims, "feature"))
    put(group, "scatter", scatter, (*dims, "feature", "feature_other"))
    put(group, "q3", q3, (*dims, "feature"))
    put(group, "q4", q4, dims)


def write_heads(root: zarr.Group, layers: Sequence[HeadSums]) -> None:
    """Write the sums of queries, keys and sharpness, layers of one shape stacked in a group (few files)."""
    shapes = list(dict.fromkeys((*one.q_sum.shape, one.k_sum.shape[1]) for one in layers))
    for i, shape in enumerate(shapes):
        same = [one for one in layers if (*one.q_sum.shape, one.k_sum.shape[1]) == shape]
        group = root.create_group(f"shape{i}")
        group.attrs.update({"layers": [one.layer for one in same], "buckets": list(same[0].buckets)})
        for name, dims in HEAD_DIMENSIONS.items():
            put(group, name, np.stack([getattr(one, name) for one in same]), ("layer", *dims))
