"""How sharp attention is: entropy, largest weight and spread of logits of query rows over sets of keys.

Godey, de la Clergerie, Sagot 2024 for the entropy; the others are our choice.
"""

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float64]


def sharpness_by_column(
    logits: Float, visible: NDArray[np.bool_], columns: NDArray[np.bool_], seen: Float
) -> tuple[Float, Float, Float]:
    """``sharpness`` of every query over each set of keys ``columns`` (C, T), from one exponential: (H, T, C) each.

    Entries with fewer than two visible keys are left undefined.
    """
    top = np.where(visible, logits, -np.inf).max(axis=2, keepdims=True)
    shifted = np.where(visible, logits - top, 0.0)
    raised = np.where(visible, np.exp(shifted), 0.0)
    indicator = columns.T.astype(np.float64)
    total, weighted = raised @ indicator, (raised * shifted) @ indicator
    largest = np.stack([(raised * column).max(axis=2) for column in columns], axis=2)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = (np.log(total) - weighted / total) / np.log(seen)
        mean = (shifted @ indicator) / seen
        variance = (shifted**2 @ indicator) / seen - mean**2
        result = entropy, largest / total, np.sqrt(np.maximum(variance, 0.0))
    lost = (seen >= 2) & (total == 0)  # every key of the set underflows beside the row's largest logit
    for h, t, c in np.argwhere(lost):
        one = sharpness(logits[h : h + 1, t : t + 1], (visible[t] & columns[c])[None])
        for values, value in zip(result, one, strict=True):
            values[h, t, c] = value[0, 0]
    return result


def sharpness(logits: Float, visible: NDArray[np.bool_]) -> tuple[Float, Float, Float]:
    """(entropy, max_weight, logit_sd), each (H, R), of R query rows over the keys they see.

    logits (H, R, T), visible (R, T) with at least two keys a row. The weights are the softmax over the
    visible keys; entropy over log(number visible), in [0, 1]; sd with ddof 0, in units of the logits.
    """
    n = visible.sum(axis=1)
    masked = np.where(visible, logits, -np.inf)
    shifted = masked - masked.max(axis=2, keepdims=True)
    raised = np.exp(shifted)
    total = raised.sum(axis=2)
    finite = np.where(visible, shifted, 0.0)
    # entropy = log Z - sum w * shifted
    entropy = (np.log(total) - np.sum(raised * finite, axis=2) / total) / np.log(n)
    mean = finite.sum(axis=2) / n
    square = np.where(visible, (finite - mean[:, :, None]) ** 2, 0.0).sum(axis=2) / n
    return entropy, 1 / total, np.sqrt(square)
