"""Moments of rows that pass by once, in memory that does not grow with their number.

Float64 sums about the mean of the first rows, shifted to the mean at the end; on the rows' own device.
"""

import numpy as np
import torch
from torch import Tensor

from isotrace.geometry.moments import Moments, add_gram, from_sums, symmetric


class Sums:
    """Sums over rows of width d, added a block at a time; any cutting into blocks gives the same to rounding."""

    def __init__(self, d: int, device: torch.device) -> None:
        self.n = 0
        on_cpu = device.type == "cpu"
        self._pivot: Tensor | None = None
        self._first, self._q3 = (torch.zeros(d, dtype=torch.float64, device=device) for _ in range(2))
        self._q4 = torch.zeros((), dtype=torch.float64, device=device)
        self._lower = np.zeros((d, d), order="F") if on_cpu else None
        self._gram = None if on_cpu else torch.zeros((d, d), dtype=torch.float64, device=device)

    def add(self, rows: Tensor) -> None:
        """Add rows (n, d) of any float type."""
        if not len(rows):
            return
        z = rows.double()
        if self._pivot is None:
            self._pivot = z.mean(dim=0)
        z = z - self._pivot
        q = (z * z).sum(dim=1)
        self.n += len(z)
        self._first += z.sum(dim=0)
        self._q3 += q @ z
        self._q4 += q @ q
        self._add_gram(z)

    def _add_gram(self, z: Tensor) -> None:
        if self._gram is not None:
            self._gram.addmm_(z.T, z)
        else:
            add_gram(z.numpy(), self._lower)

    def moments(self) -> Moments:
        """The moments of everything added so far."""
        if self._gram is not None:
            scatter = self._gram.cpu().numpy()
        else:
            assert self._lower is not None
            scatter = symmetric(self._lower)
        first, q3 = self._first.cpu().numpy(), self._q3.cpu().numpy()
        pivot = np.zeros_like(first) if self._pivot is None else self._pivot.cpu().numpy()
        return from_sums(self.n, pivot, first, scatter, q3, float(self._q4))
