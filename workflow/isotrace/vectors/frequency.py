"""Token frequency against the geometry of dumped vectors: the contextual kind alone, by counts kept with the rows.

Bernas et al. 2026, as ``geometry.frequency``; of an input embedding a dump says nothing.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrace.geometry.frequency import frequency_table
from isotrace.missing import told
from isotrace.readers import missing_of, read_contextual
from isotrace.store import open_store


def dumped_frequency(cache: Path, spec: Mapping[str, Any]) -> pd.DataFrame:
    """The frequency table of a sealed cache; spec as for ``frequency_table``, and ``buckets``."""
    root: Any = open_store(cache)
    contextual, missing = read_contextual(root, spec["buckets"]), missing_of(cache)
    if "token_id" in missing:
        contextual = {site: rows.select(np.zeros(rows.n, np.bool_)) for site, rows in contextual.items()}
    excluded = np.array(root.attrs["special_ids"], np.intp)
    counts = root["counts"][...]
    table = frequency_table(embedding=None, counts=counts, excluded=excluded, contextual=contextual, spec=spec)
    return told(table, "frequency", missing)
