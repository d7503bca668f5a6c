"""The one job that loads a model for analysis: rows, moments and attention sums over a sealed sample.

Loading again for attention, or once a bucket, would only repeat the work.
"""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isotrace.capture.attention import attention_sums
from isotrace.capture.sites import choose, find_sites
from isotrace.capture.writer import collect, write_cache, write_heads, write_moments
from isotrace.checkpoints.load import load_model
from isotrace.checkpoints.memory import keep_freed_memory
from isotrace.corpus.stores import Passes, read_passes
from isotrace.errors import ConfigError
from isotrace.geometry.head_sums import HeadSums
from isotrace.store import create, fingerprint, seal


def capture_checkpoint(
    audit_path: Path, sample_path: Path, *, cache: Path, moments: Path, heads: Path, spec: dict[str, Any]
) -> None:
    """Seal rows, moments and attention sums of one checkpoint; tombstones where its audit found it broken."""
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    attributes = _attributes(audit, spec)
    if audit["status"] == "broken":
        for manifest in (cache, moments, heads):
            manifest.with_suffix("").mkdir(parents=True, exist_ok=True)
            seal(manifest, attributes=attributes, fingerprint=fingerprint(spec), files={}, reason=audit["reason"])
        return
    passes = read_passes(sample_path)
    model = _ready(load_model(audit["source"]["path"], spec["objective"], dtype=spec["dtype"]), spec)
    sites = find_sites(model)
    kept = {name: sites[name] for name in choose(list(sites), spec["sites"])}
    where = (passes.at, passes.rows["position"])
    captured = collect(model, kept, passes.inputs, passes.targets, where, batch_size=spec["batch_size"])
    sums = _attention(model, passes, spec)
    attributes |= {"sample_digest": passes.digest, "model_sites": list(sites)}
    with (
        create(heads, attributes, fingerprint(spec)) as heads_root,
        create(moments, attributes, fingerprint(spec)) as moments_root,
        create(cache, attributes, fingerprint(spec)) as rows_root,
    ):
        write_heads(heads_root, sums)
        for i, bucket in enumerate(spec["buckets"]):
            rows = passes.rows["bucket"] == i
            write_cache(rows_root.create_group(bucket), captured, rows, passes.rows)
            write_moments(moments_root.create_group(bucket), captured, rows, passes.rows["split"])


def _attention(model: nn.Module, passes: Passes, spec: dict[str, Any]) -> list[HeadSums]:
    """Sums of queries, keys and logits over the evaluation passes, from one more forward pass without gradients."""
    chosen = np.flatnonzero(passes.split == 1)
    inputs, buckets = passes.inputs[chosen], _buckets(passes, chosen)
    return attention_sums(model, inputs, buckets, tuple(spec["buckets"]), batch_size=spec["batch_size"])


def _buckets(passes: Passes, chosen: NDArray[np.intp]) -> NDArray[np.int16]:
    """Bucket of every original id, (p, T); position 0 belongs to none where the sample leaves it out."""
    bucket: NDArray[np.int16] = passes.bucket_of[passes.originals[chosen]].copy()
    if passes.exclude_first:
        bucket[:, 0] = -1
    return bucket


def _ready(model: nn.Module, spec: dict[str, Any]) -> nn.Module:
    """On the device asked for, with the thread count of the config, and no key-value cache."""
    torch.set_num_threads(spec["threads"])
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.use_deterministic_algorithms(True)
    device = spec["device"]
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("execution.device: cuda, but torch sees none here; use auto or cpu")
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
