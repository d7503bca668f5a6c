"""A model at rest over a sample's positions: their activations by site and bucket, from forward passes alone.
Our own choice; what a probe during training and untrained models share, without any analysis."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isotrace.capture.inputs import forward_arguments
from isotrace.capture.losses import intercepted
from isotrace.capture.passes import Batch, batches
from isotrace.capture.sites import choose, find_sites
from isotrace.capture.trace import as_tensor, recorded
from isotrace.corpus.stores import Passes
from isotrace.corpus.tokens import EVAL
from isotrace.geometry.rows import Bucket


def evaluated(
    model: nn.Module,
    passes: Passes,
    *,
    sites: list[str] | None,
    modules: dict[str, Any] | None,
    batch_size: int,
    buckets: list[str],
) -> tuple[list[str], list[Bucket]]:
    """Names of all sites, and the sampled evaluation rows of those chosen by bucket, from forward passes alone.

    Gradients are zero, as of rows that have none.
    """
    held = of_split(passes, EVAL)
    with at_rest(model):
        every = find_sites(model, modules)
        chosen = {name: every[name] for name in choose(list(every), sites)}
        kept = activations(model, chosen, held, batch_size)
    kept.values["gradient"] = np.zeros_like(kept.values["activation"])
    return list(every), [kept.bucket(name, b) for b, name in enumerate(buckets)]


def activations(model: nn.Module, sites: Mapping[str, nn.Module], passes: Passes, batch_size: int) -> "Kept":
    kept = Kept(passes, list(sites))
    for batch in batches(passes, batch_size):
        ids, targets = ids_of(passes, batch, model)
        with recorded(sites) as outputs, intercepted(model), torch.no_grad():
            model(**forward_arguments(model, ids, targets))
        kept.add(batch, "activation", outputs)
    return kept


class Kept:
    """Sampled rows of one split as they come by: values[quantity] (site, n, d), losses (n,)."""

    def __init__(self, passes: Passes, sites: list[str]) -> None:
        self.passes, self.sites = passes, sites
        self.values: dict[str, NDArray[np.float32]] = {}
        self.losses = np.full(len(passes.at), np.nan)

    def add(self, batch: Batch, quantity: str, by_site: Mapping[str, torch.Tensor]) -> None:
        for i, site in enumerate(self.sites):
            rows = batch.pick(by_site[site]).detach().float().cpu().numpy()  # (m, d)
            if quantity not in self.values:
                self.values[quantity] = np.zeros((len(self.sites), len(self.losses), rows.shape[1]), np.float32)
            self.values[quantity][i, batch.rows] = rows

    def bucket(self, name: str, index: int) -> Bucket:
        rows = self.passes.rows
        here = rows["bucket"] == index
        about: dict[str, Any] = {name: rows[name][here] for name in ("token_id", "sequence", "position", "masked")}
        activations, gradients = (self.values[quantity][:, here] for quantity in ("activation", "gradient"))
        return Bucket(name, tuple(self.sites), activations, gradients, **about, loss=self.losses[here])


def of_split(passes: Passes, split: int) -> Passes:
    """The passes of one split and the sampled rows in them."""
    held, kept = passes.split == split, passes.rows["split"] == split
    renumbered = np.cumsum(held) - 1
    by_pass = ("inputs", "targets", "originals", "position_bucket", "sequence", "split")
    changed: dict[str, Any] = {name: getattr(passes, name)[held] for name in by_pass}
    changed["rows"] = {name: values[kept] for name, values in passes.rows.items()}
    return replace(passes, **changed, at=renumbered[passes.at[kept]])


def ids_of(passes: Passes, batch: Batch, model: nn.Module) -> tuple[torch.Tensor, torch.Tensor]:
    device = next(model.parameters()).device
    inputs, targets = (as_tensor(ids[batch.start : batch.stop], device) for ids in (passes.inputs, passes.targets))
    return inputs, targets


@contextmanager
def at_rest(model: Any) -> Iterator[None]:
    """The model in eval mode, frozen and without a cache, and afterwards as it was."""
    training, cache = model.training, getattr(model.config, "use_cache", False)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.eval()
    model.config.use_cache = False
    for parameter in trained:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        model.train(training)
        model.config.use_cache = cache
        for parameter in trained:
            parameter.requires_grad_(True)
