"""The one job that loads a model for analysis: rows, moments and attention sums over a sealed sample.

Loading again for attention, or once a bucket, would only repeat the work.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from isotrace.capture.accumulate import GROUPS
from isotrace.capture.attention import Unavailable, grouped_sums
from isotrace.capture.device import place, repeatable
from isotrace.capture.heads import write_heads
from isotrace.capture.maps import Maps, find_maps
from isotrace.capture.selfcheck import self_check
from isotrace.capture.sites import choose, find_sites, width
from isotrace.capture.stores import capture_stores, plan
from isotrace.capture.trace import as_tensor
from isotrace.checkpoints.load import load_model
from isotrace.checkpoints.unread import captured_from
from isotrace.corpus.stores import Passes, read_passes
from isotrace.corpus.tokens import EVAL
from isotrace.errors import ConfigError
from isotrace.geometry.jackknife import group_labels
from isotrace.limits import check_limits
from isotrace.ownership import Attempt, claim
from isotrace.store import create, fingerprint, seal_empty

CHECKED = 2
"""Sequences that the self-check runs."""


def capture_checkpoint(
    audit_path: Path,
    sample_path: Path,
    *,
    cache: Path,
    moments: Path,
    heads: Path,
    spec: dict[str, Any],
    rows_at: str | None = None,
) -> None:
    """Seal rows, moments and attention sums of one checkpoint; tombstones where its audit found it broken.

    rows_at: ``s3://BUCKET/PREFIX`` for the files of the cache, None for beside its manifest.
    """
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    attributes = captured_from(audit, spec, loss_reduction="sum", compute_dtype=spec["dtype"])
    with claim(cache, moments, heads, away={cache: rows_at}) as (cache_attempt, moments_attempt, heads_attempt):
        if audit["status"] == "broken":
            for attempt in (cache_attempt, moments_attempt, heads_attempt):
                seal_empty(attempt, attributes=attributes, fingerprint=fingerprint(spec), reason=audit["reason"])
            return
        passes = read_passes(sample_path)
        repeatable(spec["threads"])
        described = {"config": audit["config"], "remote_code": audit["remote_code"]}
        loaded = load_model(audit["source"]["path"], spec["objective"], dtype=spec["dtype"], **described)
        model = place(loaded, spec["device"])
        seen = _look(model, passes, spec)
        attributes |= {
            "sample_digest": passes.digest,
            "model_sites": seen.model_sites,
            "self_check": seen.self_check,
            "moments_tokens": spec["moments_tokens"],
        }
        _seal_heads(model, passes, heads_attempt, attributes, spec)
        with (
            create(moments_attempt, attributes, fingerprint(spec)) as moments_root,
            create(cache_attempt, attributes, fingerprint(spec)) as cache_root,
        ):
            capture_stores(model, seen.sites, seen.maps, seen.d, passes, cache_root, moments_root, spec)


@dataclass(frozen=True)
class _Seen:
    """What is read of a model, and what its self-check measured."""

    model_sites: list[str]
    sites: dict[str, nn.Module]
    maps: Maps
    d: int
    self_check: dict[str, float]


def _look(model: nn.Module, passes: Passes, spec: dict[str, Any]) -> _Seen:
    """Find sites and maps, check that they are what they are named for and that their stores stay within limits."""
    try:
        every = find_sites(model, spec["modules"])
    except ConfigError as error:
        raise ConfigError(f"models.{spec['model']}.{error}") from None
    sites = {name: every[name] for name in choose(list(every), spec["sites"])}
    maps = Maps({}, {})
    if spec["weight_gradients"] != "none":
        maps = find_maps(model, every, [name for name in sites if name.startswith("block.")])
    d = width(model, sites)
    check_limits(plan(sites, maps, d, passes, spec), f"{spec['model']} {spec['checkpoint']}")
    device = next(model.parameters()).device
    few = (as_tensor(ids[:CHECKED], device) for ids in (passes.inputs, passes.targets))
    return _Seen(list(every), sites, maps, d, self_check(model, every, *few))


def _seal_heads(
    model: nn.Module, passes: Passes, heads: Attempt, attributes: dict[str, Any], spec: dict[str, Any]
) -> None:
    """Sums of queries, keys and logits over the sampled evaluation passes, from a forward pass without gradients."""
    chosen = np.intersect1d(np.flatnonzero(passes.split == EVAL), passes.at)
    bucket = passes.bucket_of[passes.originals[chosen]].copy()  # of every original id, (p, T)
    if passes.exclude_first:
        bucket[:, 0] = -1
    try:
        group = group_labels(passes.sequence[chosen], GROUPS)
        sums = grouped_sums(
            model, passes.inputs[chosen], bucket, tuple(spec["buckets"]), group=group, batch_size=spec["batch_size"]
        )
    except Unavailable as missing:
        seal_empty(heads, attributes=attributes, fingerprint=fingerprint(spec), reason=str(missing))
        return
    with create(heads, attributes, fingerprint(spec)) as root:
        write_heads(root, sums)
