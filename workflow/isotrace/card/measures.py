"""The measures that the card judges: their names, what they mean, and where to go on from each.
Quantities of Godey et al. 2024 and Bernas et al. 2026; which of them are judged is our choice."""

from collections.abc import Callable
from dataclasses import dataclass

from isotrace.card.readings import (
    How,
    Read,
    Tables,
    attention_drift,
    frequency_bias,
    geometry,
    isotropy,
    late_energy,
    sharpness,
)


@dataclass(frozen=True)
class Measure:
    """A row of the card. ``falls``: low values are the bad ones. ``look``: where to go on from here."""

    name: str
    title: str
    meaning: str
    read: Callable[[Tables, str, How], Read]
    look: str
    falls: bool = False


MEASURES = (
    Measure(
        "mean_cosine",
        "Mean cosine after the final norm",
        "1: all hidden states point the same way; 0: no common direction",
        geometry("mean_cosine", last=True),
        "figures cosine_by_depth and cosine_over_training: at which depth it begins, and what was there untrained",
    ),
    Measure(
        "isotropy",
        "Isotropy of activations",
        "1: all directions are used alike; near 0: very few of them",
        isotropy,
        "table isotropy without outlier rows (outliers: dropped), and rankme of table geometry beside it",
        falls=True,
    ),
    Measure(
        "norm_drift",
        "Norm drift",
        "length of the mean vector over the mean length: 1 is a cloud far off the origin",
        geometry("norm_drift"),
        "table geometry, mean_cosine_centred: what is left without the mean",
    ),
    Measure(
        "outlier_norm",
        "Largest over median norm",
        "a few rows, or the few dimensions that carry them, far longer than the rest",
        geometry("max_over_median_norm"),
        "figure alternatives (outliers dropped), and scores of table isotropy with outliers: dropped",
    ),
    Measure(
        "late_energy",
        "Gradient energy, against its early peak",
        "above 1: gradients concentrate in few directions more than early in training, where they usually do most",
        late_energy,
        "figures energy_over_training and alternatives: for which tokens, and whether something simpler explains it",
    ),
    Measure(
        "attention_drift",
        "Drift of queries and keys",
        "length of the mean query or key over the mean length: 1 is all of them alike",
        attention_drift,
        "figure attention_over_training: which layer drifts first",
    ),
    Measure(
        "sharpness",
        "Sharpness of attention",
        "0: attention is spread over all keys; 1: each query reads a single one",
        sharpness,
        "table attention by query_bucket and key_bucket: whose attention, and where it goes",
    ),
    Measure(
        "frequency_bias",
        "Frequency bias",
        "1: norm or distance to the centroid follows from how frequent a token is",
        frequency_bias,
        "figure frequency_geometry, and component_tokens for the words at either end",
    ),
)
