"""Moments of weight gradients and of what their linear maps read, from sealed moments stores.

A store names its maps in the attribute ``map_inputs`` (map "block.0:NAME" -> the first map that reads the same).
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import zarr

from isotrace.geometry.moments import Moments, empty
from isotrace.geometry.summed import MapMoments
from isotrace.readers import read_moments
from isotrace.store import open_store


def map_inputs(root: zarr.Group) -> dict[str, str]:
    """Every map of a moments store with the map whose input stands for its own; none where none were captured."""
    stored: Any = root.attrs.get("map_inputs", {})
    return dict(stored)


def read_weights(root: zarr.Group, bucket: str) -> dict[str, MapMoments]:
    """What one bucket's energies of weight gradients are made from, evaluation split, by map."""
    reads = map_inputs(root)
    if not reads:
        return {}
    group: Any = root[bucket]
    tokens = group.attrs["weight_tokens"]
    gradients = _by_map(root, bucket, "eval", "weight_gradient", list(reads))
    inputs = _by_map(root, bucket, "eval", "weight_input", list(reads.values()))
    found = {}
    for name, gradient in gradients.items():
        found[name] = MapMoments(gradient, inputs.get(reads[name], empty(gradient.d)), int(tokens[name]))
    return found


def input_moments(manifests: Iterable[Path], buckets: Sequence[str]) -> dict[str, list[list[Moments]]]:
    """Fit-split moments of what maps read: first reader -> one list a checkpoint -> one entry a bucket."""
    by_map: dict[str, list[list[Moments]]] = {}
    for manifest in manifests:
        root = open_store(manifest)
        readers = list(dict.fromkeys(map_inputs(root).values()))
        parts = [_by_map(root, bucket, "fit", "weight_input", readers) for bucket in buckets]
        for reader in readers:
            by_map.setdefault(reader, []).append([part[reader] for part in parts if reader in part])
    return by_map


def _by_map(root: zarr.Group, bucket: str, split: str, quantity: str, names: Sequence[str]) -> dict[str, Moments]:
    """Moments by map, in the order of ``names``; maps without a row are left out."""
    parts = list(dict.fromkeys(name.partition(":")[2] for name in names))
    found = {part: read_moments(root, bucket, split, f"{quantity}:{part}") for part in parts}
    places = [(name, *name.split(":", 1)) for name in dict.fromkeys(names)]
    return {name: found[part][site] for name, site, part in places if site in found[part]}
