"""The tables that are made of a checkpoint's attention sums, or why there are none.

Which tables there are is our choice; what they hold is defined in ``geometry``.
"""

from pathlib import Path

import pandas as pd

from isotrace.geometry.attention import attention_table
from isotrace.geometry.attention_intervals import attention_intervals
from isotrace.geometry.attention_mass import attention_mass
from isotrace.readers import read_heads
from isotrace.store import read_manifest
from isotrace.tables import tombstone

STAGES = ("attention", "attention_intervals", "attention_mass")


def attention_tables(heads: Path, confidence: float) -> dict[str, pd.DataFrame]:
    """By stage; of a tombstone one row each, with its reason."""
    reason = read_manifest(heads)["reason"]
    if reason:
        return {stage: tombstone(stage, reason) for stage in STAGES}
    layers = read_heads(heads)
    return {
        "attention": attention_table(layer.total for layer in layers),
        "attention_intervals": attention_intervals(layers, confidence),
        "attention_mass": attention_mass(layers, confidence),
    }
