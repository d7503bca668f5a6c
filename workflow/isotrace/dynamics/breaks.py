"""Where in training a series changes its level: one change point by least squares.

Truong, Oudre, Vayatis 2020 (the package ruptures).
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]
MIN_CHECKPOINTS = 20


def change_point(x: Float, y: Float) -> tuple[float, float]:
    """(position on x midway between its two neighbours, change of the mean); NaN below 20 checkpoints."""
    import ruptures

    if len(x) < MIN_CHECKPOINTS or np.ptp(y) == 0:
        return np.nan, np.nan
    split = ruptures.Dynp(model="l2", min_size=2, jump=1).fit(y.reshape(-1, 1)).predict(n_bkps=1)[0]
    return float((x[split - 1] + x[split]) / 2), float(y[split:].mean() - y[:split].mean())
