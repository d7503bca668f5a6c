"""Made-up result tables with the public columns, shaped like the demo's: two models, four buckets, real-looking curves.
The known numbers (ratios of the first and last block over training) are those measured on a small GPT-NeoX."""

from itertools import product

import numpy as np
import pandas as pd
from synthetic_heads import attention, attention_intervals, attention_mass
from synthetic_keys import BUCKETS, DRAWS, LAYER, MODELS, RANK, SITES, STEPS, WIDTH, keys

RATIO = {
    ("block.0", "fixed"): (2.3, 2.4, 2.5, 2.7, 3.3, 6.3, 17, 56, 31, 12, 8.6, 7.3, 6.8, 6.5),
    ("block.0", "moving"): (0.9, 0.9, 0.9, 1.0, 1.7, 5.0, 18, 52, 32, 13, 8.9, 7.6, 6.9, 6.5),
    ("block.3", "fixed"): (2.2, 2.1, 2.1, 2.0, 1.8, 1.8, 2.0, 16, 25, 24, 22, 21, 20, 19),
    ("block.3", "moving"): (1.0, 1.0, 1.0, 1.1, 1.2, 1.5, 2.0, 8.5, 7.8, 6.0, 4.8, 4.2, 4.1, 3.9),
}


def ratio_at(model: str, site: str, basis: str, bucket: int, i: int) -> float:
    known = RATIO[(site if site in ("block.0", "block.3") else "block.0", "fixed" if basis != "moving" else "moving")]
    strength = (0.45 if model == "encoder" else 1.0) * (1 - 0.16 * bucket)
    return float(known[i] ** strength * (0.8 if basis == "leave_one_out" else 1.0))


def energy(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    rows = []
    k = RANK / (WIDTH - RANK)
    for model in models:
        for i, step in enumerate(steps):
            for site in SITES:
                for b, bucket in enumerate(buckets):
                    for basis in ("fixed", "moving", "leave_one_out"):
                        ratio = ratio_at(model, site, basis, b, i % len(STEPS))
                        odds = ratio * k
                        mean = k / (1 + odds)
                        low, high = (odds * f / (1 + odds * f) for f in (1 / (1.05 + 0.05 * b), 1.05 + 0.05 * b))
                        rows.append(keys(model, step, site, bucket) | {
                            "quantity": "gradient", "basis": basis, "method": "pca", "rank": RANK, "n_tokens": 1024,
                            "energy": odds / (1 + odds), "energy_lo": low, "energy_hi": high,
                            "enrichment": odds / (1 + odds) * WIDTH / RANK, "null_space": "complement",
                            "null_mean": mean, "null_mean_exact": mean, "null_sd_exact": 0.09 * mean, "ratio": ratio,
                            "z": (ratio - 1) / 0.09, "p_value": 1 / (DRAWS + 1), "n_nulls": DRAWS, "reason": "",
                        })  # fmt: skip
    return pd.DataFrame(rows)


def isotropy(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    rows = []
    for model in models:
        for i, step in enumerate(steps):
            for b, bucket in enumerate(buckets):
                for estimator, quantity in product(("plugin", "corrected"), ("gradient", "activation")):
                    grown = ratio_at(model, "block.3", "fixed", b, i % len(STEPS))
                    score = 0.5 / (1 + grown / 2)
                    gain = 0.3 * (1 - 1 / grown)
                    rows.append(keys(model, step, "block.3", bucket) | {
                        "quantity": quantity, "basis": "fixed", "method": "pca", "rank": RANK, "n_tokens": 1024,
                        "estimator": estimator, "c0": "", "shrinkage": 0.0, "convention": "complement",
                        "outliers": "kept", "score": score, "score_lo": score * 0.9, "score_hi": score * 1.12,
                        "score_without_tangent": score + gain, "null_space": "complement",
                        "score_without_normal_mean": score * 0.99, "score_without_normal_lo": score * 0.93,
                        "score_without_normal_hi": score * 1.04, "delta_tangent": gain, "delta_normal": -0.01 * score,
                        "p_value": 0.001 if gain > 0.05 * score else 0.4, "n_nulls": DRAWS, "anisotropy_share": 0.7,
                        "reason": "",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def geometry(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    rows = []
    for model in models:
        for step in steps:
            for site in SITES:
                for b, bucket in enumerate(buckets):
                    x = np.log10(1 + step)
                    height = (0.85 if model == "decoder" else 0.5) * (1 + LAYER[site]) / 5
                    cosine = 0.08 + height * np.exp(-((x - 1.2) ** 2) / 0.25) - 0.01 * b
                    for metric, value in (("mean_cosine", cosine), ("norm_drift", np.sqrt(cosine)), ("loss", 8 - x)):
                        rows.append(keys(model, step, site, bucket) | {
                            "quantity": "activation", "n_tokens": 1024, "metric": metric, "value": value,
                            "lo": value - 0.02, "hi": value + 0.02, "reason": "",
                        })  # fmt: skip
    return pd.DataFrame(rows)


def frequency(models=MODELS, steps=STEPS) -> pd.DataFrame:
    rows = []
    for model in models:
        for step in steps:
            for kind, sites in (("static", ("embed",)), ("contextual", SITES)):
                for site in sites:
                    for of, most in (("norm", -0.8), ("centroid_distance", -0.6)):
                        value = most * np.log10(1 + step) / 2.9 * (1 if model == "decoder" else 0.4)
                        value *= 1 - 0.1 * LAYER[site]
                        row = keys(model, step, site, "all")
                        del row["bucket"]
                        rows.append(row | {
                            "kind": kind, "of": of, "n_types": 900, "spearman": value, "lo": value - 0.05,
                            "hi": value + 0.05, "reason": "",
                        })  # fmt: skip
    return pd.DataFrame(rows)


def frequency_points(models=MODELS) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frames = []
    for model in models:
        count = np.maximum(1, (2e4 / (1 + np.arange(1500)) ** 1.05)).astype(int)
        norm = 0.9 - 0.08 * np.log10(count) + 0.03 * rng.standard_normal(1500)
        far = 0.8 - 0.05 * np.log10(count) + 0.04 * rng.standard_normal(1500)
        frames.append(pd.DataFrame({
            "model": model, "checkpoint": "step800", "step": 800, "token_id": np.arange(1500), "count": count,
            "norm": norm, "centroid_distance": far,
        }))  # fmt: skip
    return pd.concat(frames, ignore_index=True)


RIVALS = {"variance_weighted": 0.6, "mean_removed": 0.9, "outliers_dropped": 0.95, "loss_balanced": 1.1, "moving": 0.5}


def controls(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    """The ratios of ``energy``, and each rival at a known multiple of it."""
    plain = energy(models, buckets, steps)
    plain = plain[plain["basis"] == "fixed"]
    rows = plain[[*keys("m", 0, "embed", "b0"), "quantity", "basis", "method", "rank", "n_tokens", "ratio"]]
    rivals = {f"ratio_{name}": rows["ratio"] * factor for name, factor in RIVALS.items()}
    rest = {"n_effective": 900.0, "optimism": 0.02, "optimism_lo": 0.01, "optimism_hi": 0.03, "leaked": 0, "reason": ""}
    return rows.assign(**rivals, **rest).reset_index(drop=True)


def rank_curve(models=MODELS, buckets=BUCKETS, steps=STEPS) -> pd.DataFrame:
    """Energy k / width to a power that falls with depth and training."""
    rows = []
    for model in models:
        for step in steps:
            for site in SITES:
                for bucket in buckets:
                    power = 1 / (1 + np.log10(1 + step) * (2 + LAYER[site]) / 6)
                    for k in range(1, RANK + 1):
                        value = (k / WIDTH) ** power
                        rows.append(keys(model, step, site, bucket) | {
                            "quantity": "gradient", "basis": "fixed", "method": "pca", "n_tokens": 1024,
                            "statistic": "energy", "rank": k, "value": value, "lo": 0.9 * value, "hi": 1.1 * value,
                            "isotropic": k / WIDTH, "reason": "",
                        })  # fmt: skip
    return pd.DataFrame(rows)


def subspaces(models=MODELS, steps=STEPS) -> pd.DataFrame:
    """Overlaps that rise to the end of early training and then fall, faster in deep layers."""
    rows = []
    for model in models:
        for i, step in enumerate(steps):
            for site in SITES:
                for comparison in ("moving_to_fixed", "neighbours")[: 1 + (i > 0)]:
                    overlap = 0.9 - (0.08 + 0.02 * LAYER[site]) * abs(np.log10(1 + step) - 2)
                    row = keys(model, step, site, "all")
                    del row["bucket"]
                    rows.append(row | {
                        "comparison": comparison, "method": "pca", "other": "fixed", "rank": RANK, "overlap": overlap,
                        "angle_min": 2.0, "angle_max": 60.0, "haar_mean": RANK / WIDTH, "haar_sd": 0.01,
                        "z": (overlap - RANK / WIDTH) / 0.01, "p_value": 0.001, "n_nulls": DRAWS, "reason": "",
                    })  # fmt: skip
    return pd.DataFrame(rows)


def components(models=MODELS, buckets=BUCKETS, shown=10) -> pd.DataFrame:
    """Tokens of every length and script, a dollar sign and a control character among them."""
    words = [" the", "\\n", "ing", " American", "$x$", "\u732b", "", " unimaginably"]
    rows = []
    for model in models:
        for site in SITES:
            for component in range(1, 7):
                for sign in "+-":
                    for order in range(1, shown + 1):
                        token = 100 * component + order
                        rows.append({
                            "model": model, "checkpoint": "step128", "step": 128, "site": site, "layer": LAYER[site],
                            "method": "pca", "component": component, "explained_variance": 9.0 / component,
                            "sign": sign, "order": order, "token_id": token + 50 * (sign == "-"),
                            "token": words[token % len(words)], "bucket": buckets[token % len(buckets)],
                            "score": (2.5 - 0.1 * order) * (1 if sign == "+" else -1), "n_occurrences": 9,
                            "reason": "",
                        })  # fmt: skip
    return pd.DataFrame(rows)


def all_tables(models=MODELS, buckets=BUCKETS, steps=STEPS) -> dict[str, pd.DataFrame]:
    return {
        "energy": energy(models, buckets, steps), "isotropy": isotropy(models, buckets, steps),
        "geometry": geometry(models, buckets, steps), "frequency": frequency(models, steps),
        "attention": attention(models, steps),
        "attention_mass": attention_mass(models, buckets, steps),
        "attention_intervals": attention_intervals(models, buckets, steps),
        "controls": controls(models, buckets, steps),
        "rank_curve": rank_curve(models, buckets, steps), "subspaces": subspaces(models, steps),
        "components": components(models, buckets),
    }  # fmt: skip
