"""What two tables of one bucket are made from: ``controls`` of its rows, ``rank_curve`` of what energies are made from.

The thin layer between open stores and arrays; the cache is read once for both (our choice).
"""

import sys
from typing import Any

import pandas as pd

from isotrace.analysed import Analysed
from isotrace.geometry.bases import Basis
from isotrace.geometry.controls import controls_table
from isotrace.geometry.leak import leaked_rows, warning
from isotrace.geometry.rank_curve import rank_curve_table
from isotrace.geometry.rows import Bucket
from isotrace.readers import fit_sequences, mean_loss, read_bucket
from isotrace.weight_moments import read_weights


def bucket_checks(
    opened: Analysed, name: str, bases: list[Basis], spec: dict[str, Any], *, where: str
) -> tuple[pd.DataFrame | None, pd.DataFrame | None]:
    """Tables ``controls`` and ``rank_curve`` of one bucket; none of a tombstone.

    A leak is said on stderr and in the log, with ``where`` (model, checkpoint) it is.
    """
    if opened.cache is None or opened.moments is None:
        return None, None
    tokens = opened.tokens(name)
    evaluation = tokens if isinstance(tokens, Bucket) else read_bucket(opened.cache, name, "eval")
    fit = read_bucket(opened.cache, name, "fit")
    fitted = fit_sequences(opened.cache, spec["buckets"])
    leaked, untold = leaked_rows(evaluation, fit, fitted=fitted, model_sites=opened.sites)
    if untold:
        print(f"{where} {name}: leaks are looked for by sequence only: {untold}")
    if line := warning(leaked, where=f"{where} {name}"):
        for stream in (sys.stdout, sys.stderr):
            print(f"isotrace: warning: {line}", file=stream)
    loss = mean_loss(opened.cache, spec["buckets"])
    controls = controls_table(evaluation, fit, bases, spec, leaked=int(leaked.sum()), loss=loss)
    curves = rank_curve_table(tokens, bases, spec, weights=read_weights(opened.moments, name))
    return opened.told(controls, "controls"), opened.told(curves, "rank_curve")
