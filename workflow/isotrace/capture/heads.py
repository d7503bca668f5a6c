"""The attention store of a checkpoint: sums of queries, keys and sharpness, few files whatever the layers."""

from collections.abc import Sequence

import numpy as np
import zarr

from isotrace.geometry.head_sums import Grouped, pack
from isotrace.store import put


def write_heads(root: zarr.Group, layers: Sequence[Grouped]) -> None:
    """Write two arrays for each shape that layers have: sums (layer, value), and by group (layer, group, value).

    Their attributes say how to unpack them. Four files a shape, and few families have layers of more than one.
    """
    by_shape: dict[tuple[int, int, int], list[Grouped]] = {}
    for one in layers:
        _, heads, width = one.total.q_sum.shape
        by_shape.setdefault((heads, one.total.k_sum.shape[1], width), []).append(one)
    for i, ((heads, key_heads, width), same) in enumerate(by_shape.items()):
        shape = {"heads": heads, "key_heads": key_heads, "width": width}
        about = {"layers": [one.total.layer for one in same], "buckets": list(same[0].total.buckets), **shape}
        values = np.stack([pack(one.total) for one in same])
        groups = np.stack([[pack(group) for group in one.groups] for one in same])
        put(root, f"sums{i}", values, ("layer", f"value{i}"), **about)
        put(root, f"groups{i}", groups, ("layer", "group", f"of_group{i}"))
