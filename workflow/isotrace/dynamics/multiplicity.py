"""Adjusted p-values of a family, where some members have none.

Benjamini and Hochberg 1995.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def benjamini_hochberg(p_values: ArrayLike) -> NDArray[np.float64]:
    """False-discovery-rate adjusted p-values (n,), NaN where the p-value is.

    Missing members are held out and not counted in the family's size: a single NaN would otherwise make every
    adjusted value NaN. ValueError for a p-value outside [0, 1].
    """
    p = np.asarray(p_values, dtype=np.float64)
    known = p[~np.isnan(p)]
    if np.any((known < 0) | (known > 1)):
        raise ValueError("a p-value lies in [0, 1]")
    order = np.argsort(known, kind="stable")
    scaled = known[order] * len(known) / np.arange(1, len(known) + 1)
    adjusted = np.empty_like(known)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    out = np.full(p.shape, np.nan)
    out[~np.isnan(p)] = adjusted
    return out
