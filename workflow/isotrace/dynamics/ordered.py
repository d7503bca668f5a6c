"""Whether a quantity rises or falls along ordered frequency buckets.

Page 1963, with a row for each run.
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def ordering(values: Float) -> Float:
    """Mean over rows of Spearman's correlation of bucket order with value; values (..., rows, buckets).

    1 when every row rises from the most to the least frequent bucket, -1 when every row falls: Page's L, rescaled.
    """
    from scipy.stats import rankdata

    buckets = values.shape[-1]
    if buckets < 3:
        return np.full(values.shape[:-2], np.nan)
    ranks = rankdata(values, axis=-1) - (buckets + 1) / 2
    order = np.arange(buckets) - (buckets - 1) / 2
    spread = np.sqrt(np.sum(ranks**2, axis=-1) * np.sum(order**2))
    rho = np.divide(ranks @ order, spread, out=np.zeros(spread.shape), where=spread > 0)
    return np.asarray(rho.mean(axis=-1))


def page_p(rows: Float) -> tuple[float, float]:
    """Two-sided p-value of Page's test, and the smallest attainable; rows (runs, buckets) are independent runs."""
    from math import factorial

    from scipy.stats import page_trend_test

    sided = [float(page_trend_test(side).pvalue) for side in (rows, rows[:, ::-1])]
    smallest = 2.0 / float(factorial(rows.shape[1])) ** rows.shape[0]
    p_value = min(1.0, 2 * min(sided))
    return p_value, min(smallest, p_value)
