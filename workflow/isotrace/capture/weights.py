"""Weight gradients by bucket from one backward pass: G_b = sum over a bucket's tokens t of delta_t x_t^T.

delta_t is the gradient at a linear map's output, x_t what the map read; the split by tokens is our choice.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from isotrace.errors import DataError
from isotrace.geometry.moments import Moments, moments

Integers = NDArray[np.integer]
BATCHES = 8
"""Products added in plain float32 before their sum is folded away: at most 8 roundings of 6e-8, below 1e-6."""


class WeightSums:
    """Sums of delta x^T (d_out, d_in) by map and bucket, on the device of what is added.

    Each is an unevaluated pair of float32 matrices: ``high`` holds what is settled, ``low`` what the last batches
    added and what rounding took from ``high`` (Knuth's TwoSum), so no digit is lost however many batches there are.
    """

    def __init__(self, reads: Mapping[str, str], buckets: Sequence[str]) -> None:
        """reads[map] names the map whose input stands for its own, as in ``capture.maps.Maps``."""
        self.reads, self.buckets = dict(reads), tuple(buckets)
        self._high: dict[str, Tensor] = {}
        self._low: dict[str, Tensor] = {}
        self._tokens: dict[str, Tensor] = {}
        self._pending = 0

    def add(
        self,
        inputs: Mapping[str, Tensor],
        gradients: Mapping[str, Tensor],
        at: tuple[Integers, Integers],
        bucket: Integers,
    ) -> None:
        """Add a batch: inputs (b, T, d_in), gradients (b, T, d_out) by map, float32, as a trace holds them.

        at = (sequence (m,), position (m,)) and bucket (m,) say which rows count, and where; none twice.
        """
        if not len(bucket):
            return
        first = next(iter(inputs.values()))
        order = np.argsort(bucket, kind="stable")
        flat = np.ravel_multi_index((at[0][order], at[1][order]), first.shape[:2])  # (m,) into (b*T,)
        chosen = torch.from_numpy(flat.astype(np.int64)).to(first.device)
        edges = np.searchsorted(bucket[order], np.arange(len(self.buckets) + 1))
        spans = [(i, slice(*edges[i : i + 2])) for i in range(len(self.buckets)) if edges[i] < edges[i + 1]]
        read = {name: inputs[name].flatten(0, 1).index_select(0, chosen) for name in dict.fromkeys(self.reads.values())}
        for name, reader in self.reads.items():
            self._product(name, gradients[name].flatten(0, 1).index_select(0, chosen), read[reader], spans)
        self._pending += 1
        if self._pending == BATCHES:
            self._settle()

    def _product(self, name: str, delta: Tensor, x: Tensor, spans: Sequence[tuple[int, slice]]) -> None:
        """delta (m, d_out), x (m, d_in), rows of a bucket next to each other."""
        if name not in self._low:
            shape = (len(self.buckets), delta.shape[1], x.shape[1])
            self._high[name], self._low[name] = delta.new_zeros(shape), delta.new_zeros(shape)
            self._tokens[name] = torch.zeros(len(self.buckets), dtype=torch.int64, device=delta.device)
        pulled = _nonzero(delta)
        for i, rows in spans:
            self._low[name][i].addmm_(delta[rows].T, x[rows])
            self._tokens[name][i] += pulled[rows].sum()

    def _settle(self) -> None:
        """high + low becomes high, exactly; what float32 cannot hold of it stays in low."""
        for name, highs in self._high.items():
            for high, low in zip(highs, self._low[name], strict=True):
                total = high + low
                part = total - high
                low -= part
                high -= total - part
                low += high
                high.copy_(total)
        self._pending = 0

    def matrix(self, bucket: str, name: str) -> NDArray[np.float64]:
        """G of one bucket and map, (d_out, d_in); DataError where no batch was added."""
        if name not in self._high:
            raise DataError(f"no gradient of {name} was added: no batch had a row to count")
        i = self.buckets.index(bucket)
        found: NDArray[np.float64] = (self._high[name][i].double() + self._low[name][i]).cpu().numpy()
        return found

    def moments(self, bucket: str, name: str) -> Moments:
        """Moments of the d_out rows of G: n is d_out, and the second moment G^T G / d_out, (d_in, d_in)."""
        return moments(self.matrix(bucket, name))

    def tokens(self, bucket: str, name: str) -> int:
        """How many tokens G sums: the rows whose delta is not exactly zero."""
        return int(self._tokens[name][self.buckets.index(bucket)]) if name in self._tokens else 0


def _nonzero(delta: Tensor) -> Tensor:
    """Which rows (m,) of delta (m, d_out) are not exactly zero; few need more than their first entry looked at."""
    found = delta[:, 0] != 0
    rest = (~found).nonzero()[:, 0]
    found[rest] = (delta[rest] != 0).any(dim=1)
    return found
