"""A finished study as far as it is compared: tables and manifests with the numbers that a test sets."""

import json

import pandas as pd

from isotrace import tables

STEPS = (0, 50, 100)


def row(model, step, bucket):
    phase = "early" if step < 30 else "late" if step > 70 else "mid"
    run = {"study": "", "model": model, "seed": 0, "checkpoint": f"step{step}", "step": step, "tokens_seen": 1.0 * step}
    return run | {"progress": step / 100, "phase": phase, "site": "block.0", "layer": 0, "bucket": bucket, "reason": ""}


def energy(model, ratio, rank):
    """The ratio at the middle step, 1 elsewhere; the energy's interval is +- 10 % in odds, at width 32."""
    rows = []
    for step in STEPS:
        odds = (ratio if step == 50 else 1.0) * rank / (32 - rank)
        mean = rank / 32
        rows += [
            row(model, step, bucket)
            | {"quantity": "gradient", "basis": basis, "method": "pca", "rank": rank, "n_tokens": 100}
            | {"energy": odds / (1 + odds), "energy_lo": odds / 1.1 / (1 + odds / 1.1)}
            | {"energy_hi": 1.1 * odds / (1 + 1.1 * odds), "enrichment": 1.0, "null_space": "complement"}
            | {"null_mean": mean, "null_mean_exact": mean, "null_sd_exact": mean / 10, "z": 0.0, "p_value": 0.5}
            | {"ratio": ratio if step == 50 else 1.0, "n_nulls": 99}
            for bucket in ("b0", "b1")
            for basis in ("fixed", "moving")
        ]
    return rows


def geometry(model, cosine):
    known = {"quantity": "activation", "n_tokens": 100, "metric": "mean_cosine"}
    return [
        row(model, step, "b0") | known | {"value": cosine, "lo": cosine - 0.01, "hi": cosine + 0.01} for step in STEPS
    ]


def claim(model, verdict, estimate):
    texts = {"source": "isotrace", "quantity": "energy.ratio", "aggregate": "mean", "expected": "> 0", "note": "said"}
    known = {"claim": "early_above_late", "model": model, "verdict": verdict, "estimate": estimate}
    return known | texts | {"lo": estimate - 1, "hi": estimate + 1, "p_adjusted": float("nan")}


def finished(folder, *, models, ratio=4.0, cosine=0.2, ranks=(4,), verdict="supported", text="aa", sample="bb"):
    """A results folder; ``text`` and ``sample`` stand for the digests of what was read."""
    frames = {
        "energy": [one for m in models for rank in ranks for one in energy(m, ratio, rank)],
        "geometry": [one for m in models for one in geometry(m, cosine)],
        "claims": [claim(m, verdict, ratio) for m in models],
    }
    (folder / "tables").mkdir(parents=True)
    for name, rows in frames.items():
        frame = pd.DataFrame(rows)
        if "study" in frame:
            frame["study"] = folder.name
        tables.write(folder / "tables" / f"{name}.parquet", frame, name)
    for stage, digest in (("tokens", text), ("sample", sample)):
        (folder / stage).mkdir()
        for model in models:
            manifest = {"files": {"c/0": {"bytes": 1, "sha256": digest}}}
            (folder / stage / f"{model}.json").write_text(json.dumps(manifest))
    return folder
