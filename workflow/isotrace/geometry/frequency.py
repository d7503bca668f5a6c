"""Do frequent tokens have smaller norms and lie nearer the centroid: rank correlations over token types.

Bernas et al. 2026 (frequency, norm, distance to the centroid); equal occurrences a type are our choice:
a mean of few occurrences is longer by sampling noise alone, which by itself correlates with the count.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.rows import Rows
from isotrace.seeding import generator

Float = NDArray[np.float64]
Int = NDArray[np.integer]

COLUMNS = ["site", "kind", "of", "n_types", "spearman", "lo", "hi", "reason"]
STATIC_SITE = "embed"
MEASURES = ("norm", "centroid_distance")


def frequency_table(
    *,
    embedding: NDArray[np.floating] | None,
    counts: Int,
    excluded: Int,
    contextual: Mapping[str, Rows],
    spec: Mapping[str, Any],
) -> pd.DataFrame:
    """Spearman of count against norm and against centroid distance, static and at every contextual site.

    embedding (V, d) input embedding or None; counts (V,) of token ids over the corpus; excluded ids
    (special tokens); contextual: rows of all buckets a site. spec: seed, occurrences, noise
    (equal_occurrences | halves), min_types, resamples, confidence. The interval is a percentile bootstrap over
    types, distances held fixed.
    """
    static = np.empty((0, 1)) if embedding is None else np.asarray(embedding, np.float64)
    types = used_types(counts, excluded) if embedding is not None else np.empty(0, np.intp)
    missing = "the model has no input embedding" if embedding is None else ""
    rows = _correlations(STATIC_SITE, "static", [static[types]], counts[types], missing, spec)
    for site, tokens in contextual.items():
        known = {"occurrences": int(spec["occurrences"]), "seed": int(spec["seed"])}
        if spec["noise"] == "halves":
            types, *means = halved_means(tokens, excluded=excluded, **known)
        else:
            types, *means = contextual_means(tokens, excluded=excluded, **known)
        rows += _correlations(site, "contextual", means, counts[types], "", spec)
    return pd.DataFrame(rows, columns=COLUMNS)


def frequency_points(
    *, embedding: NDArray[np.floating], counts: Int, excluded: Int, seed: int, max_types: int = 2000
) -> pd.DataFrame:
    """token_id, count, norm, centroid_distance of a seeded sample of the static types, by token_id.

    Distances are to the centroid of *all* used types, whatever the sample; a row a type.
    """
    types = used_types(counts, excluded)
    values = np.asarray(embedding, np.float64)[types]
    frame = pd.DataFrame({"token_id": types, "count": counts[types]})
    frame["norm"] = np.linalg.norm(values, axis=1)
    frame["centroid_distance"] = centroid_distance(values) if len(types) > 1 else np.nan
    if len(frame) > max_types:
        chosen = generator(seed, "frequency_points").choice(len(frame), size=max_types, replace=False)
        frame = frame.iloc[np.sort(chosen)]
    return frame.reset_index(drop=True)


def used_types(counts: Int, excluded: Int) -> NDArray[np.intp]:
    """Token ids that the corpus holds and that are not special, rising."""
    used = np.asarray(counts) > 0
    used[np.asarray(excluded, np.intp)] = False
    return np.flatnonzero(used)


def contextual_means(rows: Rows, *, excluded: Int, occurrences: int, seed: int) -> tuple[NDArray[np.intp], Float]:
    """Type ids (N,) and their mean rows (N, d), each over ``occurrences`` rows drawn without replacement.

    Types with fewer occurrences are left out: every mean then carries the same share of sampling noise.
    """
    # the draw depends on the token ids only, so sites and checkpoints average the same occurrences
    key = generator(seed, "frequency_occurrences").random(rows.n)
    order = np.lexsort((key, rows.token_id))
    ids, first, count = np.unique(rows.token_id[order], return_index=True, return_counts=True)
    enough = (count >= occurrences) & ~np.isin(ids, excluded)
    taken = order[first[enough][:, None] + np.arange(occurrences)]
    means: Float = np.asarray(rows.values, np.float64)[taken].mean(axis=1)
    return ids[enough].astype(np.intp), means


def halved_means(rows: Rows, *, excluded: Int, occurrences: int, seed: int) -> tuple[NDArray[np.intp], Float, Float]:
    """Type ids (N,) and their means (N, d) over either half of all their rows, dealt in turn in a seeded order.

    Types with fewer than two, or ``occurrences``, rows are left out.
    """
    key = generator(seed, "frequency_halves").random(rows.n)
    order = np.lexsort((key, rows.token_id))
    ids, first, count = np.unique(rows.token_id[order], return_index=True, return_counts=True)
    enough = (count >= max(occurrences, 2)) & ~np.isin(ids, excluded)
    turn = np.arange(rows.n) - np.repeat(first, count)
    half = np.repeat(2 * np.arange(len(ids)), count) + turn % 2
    values = np.asarray(rows.values, np.float64)[order]
    sums = np.zeros((2 * len(ids), values.shape[1]))
    np.add.at(sums, half, values)
    size = np.bincount(half, minlength=2 * len(ids))
    means = sums / np.maximum(size, 1)[:, None]
    return ids[enough].astype(np.intp), means[::2][enough], means[1::2][enough]


def squared_length(first: Float, second: Float) -> Float:
    """|mean|^2 (N,) from two means (N, d) of other rows, as their inner product: noise adds nothing to it.

    Unbiased, and symmetric about 0 where the mean is 0. To subtract tr Sigma / n from the
    square of one mean is as unbiased, but skewed the more the fewer the rows, and so orders types by their count.
    """
    return np.asarray(np.sum(first * second, axis=1))


def centroid_distance(values: Float) -> Float:
    """Distance (N,) of each row of (N, d), N > 1, to the mean of the other rows, every type weighing the same."""
    n = len(values)
    # x - (S - x)/(n - 1) = (x - S/n) n/(n - 1)
    distance: Float = np.linalg.norm(values - values.mean(axis=0), axis=1) * n / (n - 1)
    return distance


def spearman(x: Float, y: Float) -> float:
    """Spearman's rank correlation of x and y (n,), ties at their mid-rank; NaN where one is constant."""
    ones = np.ones(len(x), dtype=np.intp)
    return _weighted_spearman(_codes(x), _codes(y), ones)


def spearman_interval(
    x: Float, y: Float, *, resamples: int, confidence: float, random: np.random.Generator
) -> tuple[float, float]:
    """Percentile bootstrap interval of ``spearman`` over the n pairs, ranks taken anew in each resample."""
    n, codes = len(x), (_codes(x), _codes(y))
    # a resample is a count a pair, so ranks come from cumulative counts and nothing is sorted again
    draws = [
        _weighted_spearman(*codes, np.bincount(random.integers(0, n, size=n), minlength=n)) for _ in range(resamples)
    ]
    lo, hi = np.nanquantile(draws, [0.5 - confidence / 2, 0.5 + confidence / 2])
    return float(lo), float(hi)


def _correlations(
    site: str, kind: str, means: list[Float], counts: Int, missing: str, spec: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The rows of one site and kind: means (N, d) of N types, or of either half of their rows; counts (N,)."""
    n, minimum = len(counts), max(int(spec["min_types"]), 2)
    if not missing and n < minimum:
        missing = f"{n} types, fewer than {minimum}"
    weight, random = counts.astype(np.float64), generator(int(spec["seed"]), "frequency", site, kind)
    rows = []
    for of in MEASURES:
        value, lo, hi, reason = np.nan, np.nan, np.nan, missing
        if not missing:
            measured = _lengths(means, of)
            value = spearman(weight, measured)
            reason = "" if np.isfinite(value) else f"counts or {of} are the same for every type"
        if not reason:
            lo, hi = spearman_interval(
                weight, measured, resamples=int(spec["resamples"]), confidence=float(spec["confidence"]), random=random
            )
        found = {"n_types": n, "spearman": value, "lo": lo, "hi": hi, "reason": reason}
        rows.append({"site": site, "kind": kind, "of": of, **found})
    return rows


def _lengths(means: list[Float], of: str) -> Float:
    """Norms or centroid distances (N,) of one set of means; of two halves their squares, which rank alike."""
    if len(means) == 1:
        return np.asarray(np.linalg.norm(means[0], axis=1)) if of == "norm" else centroid_distance(means[0])
    # leaving the type itself out of the centroid is one factor for all types, as in centroid_distance
    shift = [half.mean(axis=0) if of == "centroid_distance" else 0.0 for half in means]
    return squared_length(means[0] - shift[0], means[1] - shift[1])


def _codes(values: Float) -> NDArray[np.intp]:
    """Each value's place among the distinct values."""
    codes: NDArray[np.intp] = np.unique(values, return_inverse=True)[1]
    return codes


def _weighted_spearman(x: NDArray[np.intp], y: NDArray[np.intp], weights: NDArray[np.intp]) -> float:
    """Spearman where pair i, of codes x_i and y_i, stands weights_i times."""
    ranks = []
    for codes in (x, y):
        held = np.bincount(codes, weights=weights)
        middle = np.cumsum(held) - held / 2
        rank = middle[codes]
        ranks.append(rank - np.average(rank, weights=weights))
    a, b = ranks
    scale = np.sqrt(np.sum(weights * a * a) * np.sum(weights * b * b))
    return float(np.sum(weights * a * b) / scale) if scale > 0 else float("nan")
