"""A small made-up study for its page: two models, two ranks, both bases; every number as the table sets it."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml

import card_tables
from configs import ROOT, smoke
from isotrace.input_params import plain
from isotrace.report.page import page
from isotrace.report.runtime import COLUMNS
from isotrace.study import load
from made_lock import LOCK

MODELS = ("decoder", "encoder")
SENTENCES = {"a_first": "The first & best.", "a_second": "The second."}
CLAIMS = pd.DataFrame(
    {
        "claim": ["a_second", "a_first"],
        "source": ["isotrace", "tangent_paper"],
        "model": ["decoder", "<b>mine</b>"],
        "aggregate": ["mean", "max"],
        "expected": ["> 0", "> 10"],
        "estimate": [np.nan, 61.13],
        "lo": [np.nan, 57.7],
        "hi": [np.nan, 64.9],
        "verdict": ["undecided", "supported"],
        "note": ["no row", ""],
    }
)
AUDIT = pd.DataFrame(
    {
        "model": ["decoder"] * 6,
        "checkpoint": [f"step{i}" for i in range(6)],
        "finding": ["duplicate"] * 6,
        "severity": ["warning"] * 6,
        "detail": ["<i>the same</i>"] * 6,
    }
)
RUNTIME = pd.DataFrame([["capture", 6, 61.5, 20.25, 900.0], ["toy", 1, 0.4, 0.4, np.nan]], columns=list(COLUMNS))


def energy() -> pd.DataFrame:
    """Ratio = (1 + step)(2 + layer), doubled in the fixed basis, tripled at rank 8, times ten for the encoder."""
    one = card_tables.energy(lambda step, site, bucket: (1.0 + step) * (2 + card_tables.SITES[site]))
    parts = []
    for m, model in enumerate(MODELS):
        for basis in ("fixed", "moving"):
            for rank in (4, 8):
                times = (2 if basis == "fixed" else 1) * (3 if rank == 8 else 1) * 10**m
                parts.append(one.assign(model=model, basis=basis, rank=rank, ratio=one["ratio"] * times))
    return pd.concat(parts, ignore_index=True)


def without_chart(audit: pd.DataFrame = AUDIT) -> dict[str, pd.DataFrame]:
    """The study's tables with energies that could not be computed."""
    return {"energy": energy().assign(ratio=np.nan, reason="too few rows"), "claims": CLAIMS, "audit": audit}


def config() -> dict[str, Any]:
    """The smoke study's, as the rule's params hold it."""
    found: dict[str, Any] = plain(load(smoke({"study": "mine"})))
    return found


def figure(folder: Path, name: str = "energy_over_training", *, inches: float = 2) -> Path:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(inches, 1), dpi=300)
    drawn.subplots().plot([1, 2, 4, 3])
    drawn.savefig(folder / f"{name}.png")
    return folder / f"{name}.png"


def made(folder: Path, **changes: Any) -> str:
    """The page of the made-up study, some of it replaced."""
    given = {
        "tables": {"energy": energy(), "claims": CLAIMS, "audit": AUDIT},
        "headline": ["warning: decoder: 3 rows leak", "decoder: 61"],
        "sentences": SENTENCES,
        "locks": [LOCK],
        "text": pd.DataFrame({"model": ["decoder"], "corpus": ["wiki"], "language": ["en"], "tokens": [51200]}),
        "figures": {figure(folder): "**Does it?** A caption &\n*more*."},
        "runtime": RUNTIME,
        "config": config(),
        "citation": yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8")),
    }
    return page(**given | changes)
