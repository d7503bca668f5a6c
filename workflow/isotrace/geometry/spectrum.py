"""How evenly a cloud fills its directions: ranks, shares and power laws of its eigenvalues.

Razzhigaev et al. 2024 (sigma_1 share), Garrido et al. 2023 (RankMe), Roy & Vetterli 2007 (entropy rank),
Agrawal et al. 2022 with the fit of Stringer et al. 2019 (alpha-ReQ), Mu & Viswanath 2018 (partition ratio).

A *spectrum* here is an array (d,) of eigenvalues, falling, never negative: of the covariance for the
centred measures, of the second moment (the squared singular values, over n) for the uncentred ones.
"""

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.undefined import Undefined

Float = NDArray[np.float64]


def spectrum(matrix: Float) -> Float:
    """Falling eigenvalues (d,) of a symmetric (d, d) matrix; what rounding alone can produce is zero."""
    values: Float = np.linalg.eigvalsh(matrix)[::-1].astype(np.float64, copy=False)
    return clean(values)


def clean(eigenvalues: Float) -> Float:
    """The same falling eigenvalues (d,) with everything below d * eps * largest set to zero."""
    floor = len(eigenvalues) * np.finfo(np.float64).eps * max(float(eigenvalues[0]), 0.0)
    return np.where(eigenvalues > floor, eigenvalues, 0.0)


def sigma1_share(eigenvalues: Float) -> float:
    """Largest squared singular value over the sum of all, in [1/d, 1]; eigenvalues (d,)."""
    return float(eigenvalues[0] / _total(eigenvalues))


def rank_me(eigenvalues: Float) -> float:
    """Exponential of the entropy of the normalised singular values (square roots of (d,)), in [1, d].

    The published 1e-7 inside the logarithm guards float32; zero singular values are left out here instead.
    """
    _total(eigenvalues)
    return _perplexity(np.sqrt(eigenvalues))


def spectral_entropy_rank(eigenvalues: Float) -> float:
    """Exponential of the entropy of the normalised eigenvalues (d,), in [1, d]."""
    _total(eigenvalues)
    return _perplexity(eigenvalues)


def participation_ratio(eigenvalues: Float) -> float:
    """(sum of eigenvalues)^2 / sum of squares, in [1, d]; eigenvalues (d,)."""
    return float(_total(eigenvalues) ** 2 / np.sum(eigenvalues**2))


def alpha_req(eigenvalues: Float) -> float:
    """Exponent a of eigenvalue_j ~ j^-a: least squares on log j, weight 1/j, over all non-zero eigenvalues.

    Raises Undefined below three non-zero eigenvalues.
    """
    positive = eigenvalues[eigenvalues > 0]
    if len(positive) < 3:
        raise Undefined("fewer than three non-zero eigenvalues")
    index = np.arange(1, len(positive) + 1, dtype=np.float64)
    x, y, weight = np.log(index), np.log(positive), 1.0 / index
    x, y = x - np.average(x, weights=weight), y - np.average(y, weights=weight)
    return float(-np.sum(weight * x * y) / np.sum(weight * x * x))


def partition_ratio(values: Float, eigenvectors: Float) -> float:
    """I(W) = min Z / max Z, Z(c) = sum over rows of exp(c . row), in [0, 1], 1 for an isotropic cloud.

    values (n, d); eigenvectors (d, d) of values^T values **as columns**. An eigenvector's sign is
    arbitrary, so c runs over both signs (our choice); sums are taken in logarithms, so long rows give 0.
    """
    projections = values @ eigenvectors
    logs = np.concatenate([_log_sum_exp(projections), _log_sum_exp(-projections)])
    return float(np.exp(logs.min() - logs.max()))


def _log_sum_exp(projections: Float) -> Float:
    """log(sum(exp)) down the columns of (n, d)."""
    top = projections.max(axis=0)
    result: Float = top + np.log(np.exp(projections - top).sum(axis=0))
    return result


def _perplexity(weights: Float) -> float:
    """exp(entropy) of non-negative weights (d,)."""
    share = weights[weights > 0] / weights.sum()
    return float(np.exp(-np.sum(share * np.log(share))))


def _total(eigenvalues: Float) -> float:
    total = float(eigenvalues.sum())
    if total <= 0:
        raise Undefined("the rows have no spread")
    return total
