"""The two jobs that load a model: capture of rows and moments, and attention; both over a sealed sample."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import nn

from isotrace.capture.attention import attention_sums
from isotrace.capture.sites import choose, find_sites
from isotrace.capture.writer import collect, write_cache, write_moments
from isotrace.checkpoints.load import load_model
from isotrace.corpus.stores import Passes, read_passes
from isotrace.geometry.attention import attention_table
from isotrace.store import create, fingerprint, seal


def capture_checkpoint(
    audit_path: Path, sample_path: Path, *, cache: Path, moments: Path, spec: dict[str, Any]
) -> None:
    """Write the sealed cache and moments of one checkpoint; tombstones where its audit found it broken."""
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    attributes = _attributes(audit, spec)
    if audit["status"] == "broken":
        for manifest in (cache, moments):
            manifest.with_suffix("").mkdir(parents=True, exist_ok=True)
            seal(manifest, attributes=attributes, fingerprint=fingerprint(spec), files={}, reason=audit["reason"])
        return
    passes = read_passes(sample_path)
    model = _ready(load_model(audit["source"]["path"], spec["objective"], dtype=spec["dtype"]), spec)
    sites = find_sites(model)
    kept = {name: sites[name] for name in choose(list(sites), spec["sites"])}
    where = (passes.at, passes.rows["position"])
    captured = collect(model, kept, passes.inputs, passes.targets, where, batch_size=spec["batch_size"])
    attributes |= {"sample_digest": passes.digest, "model_sites": list(sites)}
    with (
        create(cache, attributes, fingerprint(spec)) as rows_root,
        create(moments, attributes, fingerprint(spec)) as moments_root,
    ):
        for i, bucket in enumerate(spec["buckets"]):
            rows = passes.rows["bucket"] == i
            write_cache(rows_root.create_group(bucket), captured, rows, passes.rows)
            write_moments(moments_root.create_group(bucket), captured, rows, passes.rows["split"])


def attention_checkpoint(audit_path: Path, sample_path: Path, spec: dict[str, Any]) -> pd.DataFrame | None:
    """Drift and sharpness over evaluation passes; None where the checkpoint is broken."""
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    if audit["status"] == "broken":
        return None
    passes = read_passes(sample_path)
    model = load_model(audit["source"]["path"], spec["objective"], attn_implementation="isotrace")
    chosen = np.flatnonzero(passes.split == 1)[: spec["sequences"]]
    sums = attention_sums(
        _ready(model, spec),
        passes.inputs[chosen],
        _buckets(passes, chosen),
        tuple(spec["buckets"]),
        batch_size=spec["batch_size"],
    )
    return attention_table(sums)


def _buckets(passes: Passes, chosen: np.ndarray) -> np.ndarray:
    """Bucket of every original id, (p, T); position 0, where a sink often sits, belongs to none."""
    bucket = passes.bucket_of[passes.originals[chosen]].copy()
    bucket[:, 0] = -1
    return bucket


def _ready(model: nn.Module, spec: dict[str, Any]) -> nn.Module:
    """On the device asked for, with the thread count of the config, and no key-value cache."""
    torch.set_num_threads(spec["threads"])
    torch.use_deterministic_algorithms(True)
    device = spec["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if getattr(model.config, "use_cache", False):
        model.config.use_cache = False  # type: ignore[union-attr]
    return model.to(device)


def _attributes(audit: dict[str, Any], spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "model": spec["model"],
        "checkpoint": spec["checkpoint"],
        "step": audit["step"],
        "tokens_seen": audit["tokens_seen"],
        "objective": spec["objective"],
        "loss_reduction": "sum",
        "compute_dtype": spec["dtype"],
        "source_dtype": audit["dtype"],
        "tensors_digest": audit["tensors_digest"],
    }
