"""The cache of a checkpoint: sampled rows streamed to disk while the model goes on with the next batch.

Compressing and writing happen in one thread of their own, in order; from a GPU rows come through pinned memory.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Any

import numpy as np
import torch
import zarr
from numpy.typing import NDArray
from torch import Tensor

from isotrace.capture.passes import Batch
from isotrace.capture.trace import Trace
from isotrace.encoding import Encoding
from isotrace.shards import RunWriter
from isotrace.store import put

COORDINATES = ("token_id", "sequence", "draw", "position", "target_id", "masked", "split")
ARRAYS = ("activations", "gradients")
_WAITING = 2


class RowWriter:
    """Writes one group a bucket; use as a context, which ends with every row on disk."""

    def __init__(
        self,
        root: zarr.Group,
        buckets: Sequence[str],
        sites: Sequence[str],
        d: int,
        sample: Mapping[str, NDArray[Any]],
        encoding: Encoding,
    ) -> None:
        self._root, self._buckets, self._sample = root, buckets, sample
        self._loss = np.empty(len(sample["bucket"]), np.float32)
        self._pool = ThreadPoolExecutor(1)
        self._waiting: deque[Future[None]] = deque()
        self._writers: dict[tuple[str, int], RunWriter] = {}
        coordinates = {"coordinates": " ".join((*COORDINATES, "loss"))}
        for b, bucket in enumerate(buckets):
            group = root.create_group(bucket)
            put(group, "site", np.array(sites), ("site",))
            shape = (len(sites), int(np.sum(sample["bucket"] == b)), d)
            for name in ARRAYS:
                writer = RunWriter(group, name, shape, encoding=encoding, attributes=coordinates)
                self._writers[name, b] = writer

    def __enter__(self) -> "RowWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(cancel_futures=kind is not None)
        if kind is None:
            self._drain(0)
            self._close()

    def add(self, batch: Batch, one: Trace) -> None:
        """Take the sampled rows of a batch; they are written while the caller goes on."""
        host, ready = _to_host(batch, one)
        self._loss[batch.rows] = batch.pick(one.losses).cpu().numpy()
        self._drain(_WAITING - 1)
        self._waiting.append(self._pool.submit(self._write, batch, host, ready))

    def _drain(self, most: int) -> None:
        """Wait until at most so many batches are unwritten; what went wrong in writing is raised here."""
        while len(self._waiting) > most:
            self._waiting.popleft().result()

    def _write(self, batch: Batch, host: NDArray[np.float32], ready: torch.cuda.Event | None) -> None:
        if ready is not None:
            ready.synchronize()
        edges = np.searchsorted(batch.bucket, np.arange(len(self._buckets) + 1))
        for (name, b), writer in self._writers.items():
            writer.append(host[ARRAYS.index(name), :, edges[b] : edges[b + 1]])

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        for b, bucket in enumerate(self._buckets):
            group, rows = self._root[bucket], self._sample["bucket"] == b
            assert isinstance(group, zarr.Group)
            for name in COORDINATES:
                put(group, name, self._sample[name][rows], ("token",))
            put(group, "loss", self._loss[rows], ("token",), units="nats")


def _to_host(batch: Batch, one: Trace) -> tuple[NDArray[np.float32], torch.cuda.Event | None]:
    """Sampled rows as (quantity, site, m, d) on the host, and on a GPU the event after which they are there."""
    quantities = (one.activations, one.gradients)
    first = next(iter(one.activations.values()))
    on_gpu = first.device.type == "cuda"
    shape = (len(quantities), len(one.activations), len(batch.rows), first.shape[-1])
    host = torch.empty(shape, dtype=torch.float32, pin_memory=on_gpu)
    for q, i, values in _each(quantities):
        host[q, i].copy_(batch.pick(values), non_blocking=on_gpu)
    ready = None
    if on_gpu:
        ready = torch.cuda.Event()  # type: ignore[no-untyped-call]
        ready.record()
    return host.numpy(), ready


def _each(quantities: Sequence[Mapping[str, Tensor]]) -> list[tuple[int, int, Tensor]]:
    return [(q, i, values) for q, by_site in enumerate(quantities) for i, values in enumerate(by_site.values())]
