"""A sealed sample run through a model, batch by batch: what is traced, and which of its rows are kept.

One pass over the sequences serves every bucket and every store; loading a model a bucket would only repeat the work.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from isotrace.capture.trace import Trace, as_tensor, trace
from isotrace.corpus.stores import Passes


@dataclass(frozen=True)
class Batch:
    """Passes start ... stop - 1 and the m sampled rows in them, sorted by bucket, each array (m,).

    rows indexes the sample; sequence and position say where a row lies in the batch.
    """

    start: int
    stop: int
    rows: NDArray[np.intp]
    sequence: NDArray[np.int64]
    position: NDArray[np.int64]
    bucket: NDArray[np.int16]
    split: NDArray[np.int8]

    def pick(self, values: Tensor) -> Tensor:
        """The sampled rows (m, d) of values (b, T, d), or (m,) of (b, T)."""
        device = values.device
        return values[as_tensor(self.sequence, device), as_tensor(self.position, device)]


def batches(passes: Passes, batch_size: int) -> Iterator[Batch]:
    """All passes in order, ``batch_size`` at a time."""
    for start in range(0, len(passes.inputs), batch_size):
        stop = min(start + batch_size, len(passes.inputs))
        inside = np.arange(*np.searchsorted(passes.at, [start, stop]))
        rows = inside[np.argsort(passes.rows["bucket"][inside], kind="stable")]
        yield Batch(
            start,
            stop,
            rows,
            passes.at[rows] - start,
            passes.rows["position"][rows].astype(np.int64),
            passes.rows["bucket"][rows],
            passes.rows["split"][rows],
        )


def traced(
    model: nn.Module,
    sites: Mapping[str, nn.Module],
    passes: Passes,
    *,
    batch_size: int,
    maps: Mapping[str, nn.Module] | None = None,
) -> Iterator[tuple[Batch, Trace]]:
    """Every batch with its activations and gradients."""
    device = next(model.parameters()).device
    for batch in batches(passes, batch_size):
        inputs, targets = (as_tensor(ids[batch.start : batch.stop], device) for ids in (passes.inputs, passes.targets))
        yield batch, trace(model, sites, inputs, targets, maps=maps)
