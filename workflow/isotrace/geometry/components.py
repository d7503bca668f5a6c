"""What a basis's directions are: the token types whose contextual means lie furthest out along each component.

Naming a direction by the tokens at its ends is common practice; means of types and their units are our choice.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrace.geometry.bases import Basis
from isotrace.geometry.rows import Rows

Float = NDArray[np.float64]
Int = NDArray[np.integer]
COLUMNS = [
    "site", "method", "component", "explained_variance", "sign", "order", "token_id", "bucket", "score",
    "n_occurrences", "reason",
]  # fmt: skip


def component_table(
    basis: Basis, rows_by_site: Mapping[str, Rows], buckets: Mapping[int, str], spec: Mapping[str, Any]
) -> pd.DataFrame:
    """The types at both ends of the leading components of every site of ``rows_by_site``, a row each.

    buckets: name by token id. spec: components, top_tokens, min_occurrences. Where fewer than twice ``top_tokens``
    types are frequent enough, each end shows half of them, so no type stands at both; with fewer than two, one row
    with the reason. ``component`` counts from 1.
    """
    made: list[dict[str, Any]] = []
    for site, rows in rows_by_site.items():
        at = basis.sites.index(site)
        vectors = basis.vectors[at][:, : int(spec["components"])]
        types, counts, scores = type_scores(rows, vectors, occurrences=int(spec["min_occurrences"]))
        for c in range(vectors.shape[1]):
            known = {"site": site, "method": basis.method, "component": c + 1}
            known |= {"explained_variance": basis.explained_variance[at, c]}
            made += _ends(known, types, counts, scores[:, c], buckets, spec)
    return pd.DataFrame(made, columns=COLUMNS)


def type_scores(rows: Rows, vectors: Float, *, occurrences: int) -> tuple[Int, Int, Float]:
    """Token ids (N,), their rows (N,) and scores (N, k) along vectors (d, k), of types with so many rows or more.

    A score is the type's mean projection minus that of all rows, over the standard deviation of single rows'
    projections: 2 says that the mean of the type lies where few single rows do. NaN along a direction that the basis
    does not determine, or on which no row differs from another. Negative ids are unknown ones, and of no type.
    """
    projected = np.asarray(rows.values, np.float64) @ vectors
    spread = projected.std(axis=0)
    centred = projected - projected.mean(axis=0)
    types, of, counts = np.unique(rows.token_id, return_inverse=True, return_counts=True)
    sums = np.zeros((len(types), vectors.shape[1]))
    np.add.at(sums, of, centred)
    enough = (counts >= occurrences) & (types >= 0)
    flat = spread <= np.finfo(np.float64).eps * np.abs(projected).max(axis=0, initial=0.0)
    scores: Float = sums[enough] / counts[enough, None] / np.where(flat, np.nan, spread)
    return types[enough], counts[enough], scores


def _ends(
    known: dict[str, Any], types: Int, counts: Int, scores: Float, buckets: Mapping[int, str], spec: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Rows of the types with the largest and the smallest of scores (N,), ties by token id."""
    n = min(int(spec["top_tokens"]), len(types) // 2)
    reason = ""
    if not np.isfinite(known["explained_variance"]) or np.isnan(scores).any():
        reason = "the data do not determine this direction"
    elif n == 0:
        reason = f"{len(types)} types with {spec['min_occurrences']} or more rows, fewer than 2"
    if reason:
        gap = {"sign": "", "order": pd.NA, "token_id": pd.NA, "bucket": "", "score": np.nan, "n_occurrences": pd.NA}
        return [known | gap | {"reason": reason}]
    made = []
    for sign, order in (("+", np.lexsort((types, -scores))[:n]), ("-", np.lexsort((types, scores))[:n])):
        for place, i in enumerate(order, start=1):
            token = {"token_id": int(types[i]), "bucket": buckets[int(types[i])]}
            value = {"score": float(scores[i]), "n_occurrences": int(counts[i]), "reason": ""}
            made.append(known | {"sign": sign, "order": place} | token | value)
    return made
