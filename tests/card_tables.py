"""Made-up tables of one model with the public columns that a card reads, each number as the test sets it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from isotrace.input_params import plain
from isotrace.settings.card import Card

STEPS = (0, 10, 20, 40, 80, 100)
SITES = {"embed": -1, "block.0": 0, "block.1": 1, "final_norm": 2}
BUCKETS = ("b0", "b1")
METRICS = {"mean_cosine": 0.2, "mean_cosine_centred": 0.01, "norm_drift": 0.3, "max_over_median_norm": 1.5, "loss": 4.0}
Value = float | Callable[[int, str, str], float]


def how(**changes: Any) -> dict[str, Any]:
    """What the rule's params hold, with ``thresholds`` or other keys replaced."""
    read = {"rank": 4, "method": "pca", "null_space": "complement", "seed": 0, "resamples": 200, "confidence": 0.95}
    return read | plain(Card()) | changes


def limits(**changes: tuple[float, float]) -> dict[str, dict[str, float]]:
    """The default thresholds with some of them replaced: name=(watch, alarm)."""
    given = {name: {"watch": watch, "alarm": alarm} for name, (watch, alarm) in changes.items()}
    return plain(Card())["thresholds"] | given


def _run(step: int, site: str) -> dict[str, Any]:
    progress = step / STEPS[-1]
    phase = "early" if progress <= 0.3 else "late" if progress >= 0.7 else "mid"
    known = {"study": "made", "model": "mine", "seed": 0, "checkpoint": f"step{step}", "step": step}
    return known | {"progress": progress, "phase": phase, "site": site, "layer": SITES[site], "reason": ""}


def _of(value: Value, step: int, site: str, bucket: str) -> float:
    return float(value(step, site, bucket) if callable(value) else value)


def _places() -> list[tuple[int, str, str]]:
    return [(step, site, bucket) for step in STEPS for site in SITES for bucket in BUCKETS]


def geometry(**metrics: Value) -> pd.DataFrame:
    """Activations' metrics, all of ``METRICS`` unless given; intervals are +- 0.01 and loss is at the final norm."""
    rows = []
    for name, value in (METRICS | metrics).items():
        for step, site, bucket in _places():
            if name == "loss" and site != "final_norm":
                continue
            v = _of(value, step, site, bucket)
            near = {"value": v, "lo": v - 0.01, "hi": v + 0.01, "metric": name, "quantity": "activation"}
            rows.append(_run(step, site) | {"bucket": bucket, "n_tokens": 100, **near})
    return pd.DataFrame(rows)


def isotropy(score: Value = 0.3) -> pd.DataFrame:
    rows = []
    for step, site, bucket in _places():
        v = _of(score, step, site, bucket)
        given = {
            "score": v,
            "score_lo": 0.9 * v,
            "score_hi": 1.1 * v,
            "quantity": "activation",
            "estimator": "corrected",
        }
        rows.append(_run(step, site) | {"bucket": bucket, "outliers": "kept", "c0": "", **given})
    return pd.DataFrame(rows)


def energy(ratio: Value = lambda step, site, bucket: 20.0 if step == 20 else 10.0) -> pd.DataFrame:
    rows = []
    for step, site, bucket in _places():
        odds = _of(ratio, step, site, bucket) / 10
        share = odds / (1 + odds)
        given = {"quantity": "gradient", "basis": "moving", "method": "pca", "rank": 4, "null_space": "complement"}
        given |= {"energy": share, "energy_lo": share * 0.98, "energy_hi": share * 1.01, "ratio": odds * 10}
        rows.append(_run(step, site) | {"bucket": bucket, "null_mean_exact": 0.1, "null_sd_exact": 0.01, **given})
    return pd.DataFrame(rows)


def attention_intervals(drift: Value = 0.3, entropy: Value = 0.9) -> pd.DataFrame:
    rows = []
    for step in STEPS:
        for layer in (0, 1):
            for head in (0, 1):
                known = {k: v for k, v in _run(step, f"block.{layer}").items() if k not in ("site", "study")}
                d, e = (_of(x, step, f"block.{layer}", "all") for x in (drift, entropy))
                known |= {"head": head, "query_bucket": "all", "key_bucket": "all"}
                for column, value in (("drift_q", d - 0.1), ("drift_k", d + 0.1), ("entropy", e)):
                    rows.append(known | {"column": column, "value": value, "lo": value - 0.02, "hi": value + 0.04})
    return pd.DataFrame(rows)


def frequency(spearman: Value = -0.4) -> pd.DataFrame:
    rows = []
    for step in STEPS:
        for of in ("norm", "centroid_distance"):
            v = _of(spearman, step, "embed", "all") * (1.0 if of == "norm" else 0.5)
            given = {"kind": "static", "of": of, "n_types": 50, "spearman": v, "lo": v - 0.05, "hi": v + 0.05}
            rows.append(_run(step, "embed") | given)
    return pd.DataFrame(rows)


def controls(ratio: float = 8.0, dropped: float = 7.0) -> pd.DataFrame:
    rows = []
    for step, site, bucket in _places():
        given = {"quantity": "activation", "basis": "fixed", "method": "pca", "rank": 4}
        rows.append(_run(step, site) | given | {"bucket": bucket, "ratio": ratio, "ratio_outliers_dropped": dropped})
    return pd.DataFrame(rows)


def tables(**changes: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All six tables of a healthy model, some of them replaced."""
    made = (geometry, isotropy, energy, attention_intervals, frequency, controls)
    return {make.__name__: make() for make in made} | changes


def without_newest(frames: Mapping[str, pd.DataFrame], reason: str) -> dict[str, pd.DataFrame]:
    """The tables as a broken last checkpoint leaves them: one row a table (or bucket) that names no place."""
    found = {}
    for name, frame in frames.items():
        last = frame["step"] == STEPS[-1]
        one = frame[last].drop_duplicates(["bucket"] if "bucket" in frame else ["step"])
        kept = ("study", "model", "seed", "checkpoint", "step", "progress", "phase", "bucket")
        empty = {c: "" if one[c].dtype == "str" else np.nan for c in one if c not in kept}
        gone = one.assign(**empty | {"reason": reason})
        found[name] = pd.concat([frame[~last], gone], ignore_index=True)
    return found


def write(folder: Path, frames: Mapping[str, pd.DataFrame]) -> None:
    """The tables and an empty lock below a results folder, as a finished study has them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    (folder / "tables").mkdir(parents=True)
    (folder / "checkpoints").mkdir()
    (folder / "checkpoints" / "mine.lock.json").write_text('{"model": "mine", "checkpoints": []}')
    for name, frame in frames.items():
        kinds = {"i": pa.int64(), "f": pa.float64()}
        arrays = [pa.array(frame[c].tolist(), type=kinds.get(frame[c].dtype.kind, pa.string())) for c in frame]
        pq.write_table(pa.table(arrays, names=list(frame)), folder / "tables" / f"{name}.parquet")
