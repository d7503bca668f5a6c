"""What a fitted basis is; fitting lives in ``subspaces``, use in ``energy`` and ``ablation``."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Basis:
    """An orthonormal basis a site, components by falling explained variance.

    vectors (site, d, k), explained_variance (site, k), n_tokens (site,);
    kind is ``fixed | moving | leave_one_out``, method a name registered in ``subspaces``.
    A site's invalid trailing components are NaN columns.
    """

    kind: str
    method: str
    sites: tuple[str, ...]
    vectors: NDArray[np.float64]
    explained_variance: NDArray[np.float64]
    n_tokens: NDArray[np.int64]

    def at(self, site: str, rank: int) -> NDArray[np.float64]:
        """The first ``rank`` components at a site, (d, rank)."""
        basis: NDArray[np.float64] = self.vectors[self.sites.index(site)][:, :rank]
        return basis
