"""The attention store of a checkpoint: sums of queries, keys and sharpness, few files whatever the layers."""

from collections.abc import Sequence

import numpy as np
import zarr

from isotrace.geometry.head_sums import HeadSums, pack
from isotrace.store import put


def write_heads(root: zarr.Group, layers: Sequence[HeadSums]) -> None:
    """Write one array (layer, value) for each shape that layers have; its attributes say how to unpack it.

    Two files a shape, and few families have layers of more than one.
    """
    by_shape: dict[tuple[int, int, int], list[HeadSums]] = {}
    for one in layers:
        _, heads, width = one.q_sum.shape
        by_shape.setdefault((heads, one.k_sum.shape[1], width), []).append(one)
    for i, ((heads, key_heads, width), same) in enumerate(by_shape.items()):
        shape = {"heads": heads, "key_heads": key_heads, "width": width}
        numbers = [one.layer for one in same]
        values = np.stack([pack(one) for one in same])
        put(root, f"sums{i}", values, ("layer", f"value{i}"), layers=numbers, buckets=list(same[0].buckets), **shape)
