"""Moments of rows that a batch shows once and nobody keeps: every evaluation token, or what linear maps read.

Sums are kept by bucket, split, quantity and site, and for evaluation rows by group of sequences, one group at a
time (passes come in the order of their groups), so memory depends on neither tokens nor groups.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from isotrace.capture.passes import Batch
from isotrace.capture.sums import Sums
from isotrace.capture.trace import as_tensor
from isotrace.corpus.buckets import NONE
from isotrace.corpus.stores import Passes
from isotrace.corpus.tokens import EVAL, FIT
from isotrace.geometry.jackknife import group_labels
from isotrace.geometry.moments import Moments, merge

GROUPS = 20
"""Groups of evaluation sequences whose sums are stored for the jackknife; our choice."""

Key = tuple[int, int, str, str]
"""Bucket, split, quantity, site."""


@dataclass(frozen=True)
class Selection:
    """m positions of a batch, sorted by bucket, that enter sums; group (m,) of evaluation sequences."""

    sequence: NDArray[np.int64]
    position: NDArray[np.int64]
    bucket: NDArray[np.int16]
    split: NDArray[np.int8]
    group: NDArray[np.intp]


class Selector:
    """Which positions of a batch enter sums: the sampled rows, or with ``every`` all evaluation positions too."""

    def __init__(self, passes: Passes, *, every: bool) -> None:
        self._passes, self._every = passes, every
        self._group = np.zeros(len(passes.inputs), np.intp)
        evaluation = passes.split == EVAL
        if every:
            self._group[evaluation] = group_labels(passes.sequence[evaluation], GROUPS)
        self.groups = int(self._group.max()) + 1

    def __call__(self, batch: Batch) -> Selection:
        """The sampled rows of the batch; with ``every`` those of the fit split, and all evaluation positions."""
        sequence, position, bucket, split = batch.sequence, batch.position, batch.bucket, batch.split
        if self._every:
            fit = split == FIT
            inside = self._passes.position_bucket[batch.start : batch.stop].copy()
            inside[self._passes.split[batch.start : batch.stop] == FIT] = NONE
            s, p = np.nonzero(inside != NONE)
            sequence, position = np.concatenate([sequence[fit], s]), np.concatenate([position[fit], p])
            bucket = np.concatenate([bucket[fit], inside[s, p]])
            split = np.concatenate([split[fit], np.full(len(s), EVAL, np.int8)])
        order = np.argsort(bucket, kind="stable")
        sequence, position = sequence[order], position[order]
        group = self._group[batch.start + sequence]
        return Selection(sequence, position, bucket[order], split[order], group)


class Accumulator:
    """Moments by ``Key``; ``end_group`` is given each finished group and its moments of the evaluation rows."""

    def __init__(self, end_group: Callable[[int, dict[Key, Moments]], None] | None = None) -> None:
        self._end_group = end_group
        self._fit: dict[Key, Sums] = {}
        self._eval: dict[Key, Sums] = {}
        self._total: dict[Key, Moments] = {}
        self._group = 0

    def add(self, values: Mapping[tuple[str, str], Tensor], selection: Selection) -> None:
        """Add a batch: values (b, T, d) by (quantity, site); rows of gradients that are exactly zero are left out."""
        fit = selection.split == FIT
        self._add(self._fit, values, selection, fit)
        for group in np.unique(selection.group[~fit]):
            if group != self._group:
                self._finish_group()
                self._group = int(group)
            self._add(self._eval, values, selection, ~fit & (selection.group == group))

    def _add(
        self,
        sums: dict[Key, Sums],
        values: Mapping[tuple[str, str], Tensor],
        selection: Selection,
        keep: NDArray[np.bool_],
    ) -> None:
        split = FIT if sums is self._fit else EVAL
        for bucket in np.unique(selection.bucket[keep]):
            chosen = np.flatnonzero(keep & (selection.bucket == bucket))
            for (quantity, site), tensor in values.items():
                at = tuple(as_tensor(a[chosen], tensor.device) for a in (selection.sequence, selection.position))
                rows = tensor[at]  # (b, T, d) -> (m, d)
                if quantity == "gradient":
                    rows = rows[(rows != 0).any(dim=1)]
                key = (int(bucket), split, quantity, site)
                if key not in sums:
                    sums[key] = Sums(rows.shape[1], tensor.device)
                sums[key].add(rows)

    def _finish_group(self) -> None:
        done = {key: sums.moments() for key, sums in self._eval.items()}
        if self._end_group is not None:
            self._end_group(self._group, done)
        for key, part in done.items():
            self._total[key] = merge(self._total[key], part) if key in self._total else part
        self._eval = {}

    def finish(self) -> dict[Key, Moments]:
        """Moments of everything that was added; nothing can be added after."""
        self._finish_group()
        return self._total | {key: sums.moments() for key, sums in self._fit.items()}
