"""What a store lacks from the beginning, said by the rows that would have been made of it; our choice."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from isotrace.schema import columns

PLACES = {"gradient": ("quantity", "gradient"), "loss": ("metric", "loss"), "token_id": ("kind", "contextual")}
"""What may be missing -> the column and the entry of it by which its rows are known."""


def told(frame: pd.DataFrame, stage: str, missing: Mapping[str, str]) -> pd.DataFrame:
    """The table with no numbers, and with the reason, in the rows of what is missing; {what: reason}."""
    numbers = [c.name for c in columns(stage, scope="checkpoint") if c.kind == "real" and not c.nullable]
    found = frame.copy()
    for what, reason in missing.items():
        column, entry = PLACES[what]
        if column in found:
            rows = found[column] == entry
            found.loc[rows, numbers] = np.nan
            found.loc[rows, "reason"] = reason
    return found
