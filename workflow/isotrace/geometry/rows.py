"""Rows of one frequency bucket at every site, and which of them a statistic may use.

A gradient row that is exactly zero (last position; unmasked positions of a masked language model at
the last block) carries no direction: gradient statistics use the non-zero rows only.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Quantity = Literal["activation", "gradient"]
Float = NDArray[np.floating]


@dataclass(frozen=True)
class Rows:
    """n rows of width d with the sequence each was read in; values (n, d), sequence (n,), token_id (n,)."""

    values: Float
    sequence: NDArray[np.integer]
    token_id: NDArray[np.integer]

    @property
    def n(self) -> int:
        return int(self.values.shape[0])

    def select(self, keep: NDArray[np.bool_]) -> "Rows":
        """The rows where ``keep`` (n,) is true."""
        return Rows(self.values[keep], self.sequence[keep], self.token_id[keep])


@dataclass(frozen=True)
class Bucket:
    """One bucket, one split, one checkpoint: activations and gradients (site, n, d), the rest (n,)."""

    name: str
    sites: tuple[str, ...]
    activations: Float
    gradients: Float
    token_id: NDArray[np.integer]
    sequence: NDArray[np.integer]
    position: NDArray[np.integer]
    loss: Float
    masked: NDArray[np.bool_]

    @property
    def has_target(self) -> NDArray[np.bool_]:
        """Which rows (n,) have a loss of their own."""
        return has_target(self.loss, self.masked)

    def rows(self, site: str, quantity: Quantity) -> Rows:
        """Float64 rows of one site; for gradients only those that are not exactly zero."""
        i = self.sites.index(site)
        values = np.asarray((self.activations if quantity == "activation" else self.gradients)[i], np.float64)
        rows = Rows(values, self.sequence, self.token_id)
        return rows if quantity == "activation" else rows.select(nonzero(values))


def has_target(loss: Float, masked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which rows (n,) have a loss of their own: all with a finite one, or of those the masked if any is."""
    found: NDArray[np.bool_] = np.isfinite(loss) & (masked if masked.any() else True)
    return found


def nonzero(values: Float) -> NDArray[np.bool_]:
    """Which rows (n,) of values (n, d) are not exactly zero: those whose gradient has a direction."""
    kept: NDArray[np.bool_] = np.any(values != 0, axis=1)
    return kept
