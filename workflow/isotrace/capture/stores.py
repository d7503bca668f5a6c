"""One pass over the sample fills the stores of a checkpoint: rows, their moments, and what only sums remain of."""

from collections import Counter
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import zarr
from torch import Tensor, nn

from isotrace.capture.accumulate import Accumulator, Selection, Selector
from isotrace.capture.maps import Maps
from isotrace.capture.moments_store import QUANTITIES, GroupWriter, moments_of_rows, write_moments
from isotrace.capture.passes import traced
from isotrace.capture.rows import RowWriter
from isotrace.capture.trace import Trace
from isotrace.capture.weights import WeightSums
from isotrace.corpus.stores import Passes
from isotrace.corpus.tokens import EVAL, FIT
from isotrace.encoding import Encoding
from isotrace.limits import Plan
from isotrace.store import put


def capture_stores(
    model: nn.Module,
    sites: Mapping[str, nn.Module],
    maps: Maps,
    d: int,
    passes: Passes,
    cache: zarr.Group,
    moments: zarr.Group,
    spec: Mapping[str, Any],
) -> None:
    """Fill the cache and the moments, two stores being created, with what ``sites`` of width d and ``maps`` show.

    spec: ``threads``, ``buckets``, ``batch_size``, ``store`` ({dtype}), ``moments_tokens`` (sample | all),
    ``weight_gradients`` (none | moments | matrices).
    """
    streamed = Streamed(moments, list(sites), maps, d, passes, spec)
    with RowWriter(cache, spec["buckets"], list(sites), d, passes.rows, Encoding(spec["store"]["dtype"])) as rows:
        for batch, one in traced(model, sites, passes, batch_size=spec["batch_size"], maps=maps.modules):
            rows.add(batch, one)
            streamed.add(one, streamed.select(batch))
    streamed.write(cache)


def plan(sites: Mapping[str, nn.Module], maps: Maps, d: int, passes: Passes, spec: Mapping[str, Any]) -> Plan:
    """What the stores of a checkpoint will hold."""
    groups = Selector(passes, every=True).groups if spec["moments_tokens"] == "all" else 0
    shapes = Counter(tuple(module.get_parameter("weight").shape) for module in maps.modules.values())
    return Plan(
        sites=len(sites),
        width=d,
        rows=tuple(int(np.sum(passes.rows["bucket"] == b)) for b in range(len(spec["buckets"]))),
        dtype=spec["store"]["dtype"],
        quantities=len(quantities(maps)),
        groups=groups,
        matrices=tuple((n, *shape) for shape, n in shapes.items()) if spec["weight_gradients"] == "matrices" else (),
        heads=((1, 1), (1, 1, 1)),
    )


def quantities(maps: Maps) -> list[str]:
    """The entries of the moments' axis of that name: rows, then weight gradients, then what their maps read."""
    gradients = dict.fromkeys(f"weight_gradient:{name.split(':', 1)[1]}" for name in maps.modules)
    inputs = dict.fromkeys(f"weight_input:{name.split(':', 1)[1]}" for name in maps.reads.values())
    return [*QUANTITIES, *gradients, *inputs]


class Streamed:
    """What is summed while the model runs, and the moments store that it goes into with the moments of the rows."""

    def __init__(
        self, root: zarr.Group, sites: list[str], maps: Maps, d: int, passes: Passes, spec: Mapping[str, Any]
    ) -> None:
        self._sites, self._maps, self._d, self._spec = sites, maps, d, spec
        self._every = spec["moments_tokens"] == "all"
        self._groups = {bucket: root.create_group(bucket) for bucket in spec["buckets"]}
        if maps.modules:
            root.attrs["map_inputs"] = maps.reads
        self.select = Selector(passes, every=self._every)
        self._weights = WeightSums(maps.reads, spec["buckets"])
        self._quantities = quantities(maps)
        self._by_group: GroupWriter | None = None
        if self._every:
            buckets, groups = list(self._groups.values()), self.select.groups
            self._by_group = GroupWriter(buckets, sites, self._quantities, d, groups)
        self._sums = Accumulator(self._by_group.end_group if self._by_group else None)

    def add(self, one: Trace, selection: Selection) -> None:
        """Add a batch: every evaluation position where asked for, and what linear maps read and were pulled by."""
        values = self._values(one)
        if values:
            self._sums.add(values, selection)
        if self._maps.modules:
            tested = selection.split == EVAL
            at = (selection.sequence[tested], selection.position[tested])
            self._weights.add(one.map_inputs, one.map_gradients, at, selection.bucket[tested])

    def _values(self, one: Trace) -> dict[tuple[str, str], Tensor]:
        """By (quantity, site) what is summed as it passes by."""
        values: dict[tuple[str, str], Tensor] = {}
        if self._every:
            for quantity, by_site in zip(QUANTITIES, (one.activations, one.gradients), strict=True):
                values |= {(quantity, site): tensor for site, tensor in by_site.items()}
        for reader in dict.fromkeys(self._maps.reads.values()):
            site, name = reader.split(":", 1)
            values[f"weight_input:{name}", site] = one.map_inputs[reader]
        return values

    def write(self, cache: zarr.Group) -> None:
        """Write every bucket's moments, those of the cached rows among them."""
        sums = self._sums.finish()
        if self._by_group is not None:
            self._by_group.close()
        for b, (bucket, group) in enumerate(self._groups.items()):
            rows: Any = cache[bucket]
            found = {key[1:]: m for key, m in sums.items() if key[0] == b}
            for name in self._maps.modules:
                site, part = name.split(":", 1)
                found[EVAL, f"weight_gradient:{part}", site] = self._weights.moments(bucket, name)
            splits = (FIT,) if self._every else (FIT, EVAL)
            kept = moments_of_rows(rows, splits, self._spec["threads"])
            write_moments(group, self._sites, self._quantities, self._d, chain(found.items(), kept))
            if self._maps.modules:
                group.attrs["weight_tokens"] = {name: self._weights.tokens(bucket, name) for name in self._maps.modules}
            if self._spec["weight_gradients"] == "matrices":
                self._write_matrices(group, bucket)

    def _write_matrices(self, group: zarr.Group, bucket: str) -> None:
        """The matrices themselves, those of one shape in one array (map, output, feature)."""
        by_shape: dict[tuple[int, ...], list[str]] = {}
        for name in self._maps.modules:
            by_shape.setdefault(self._weights.matrix(bucket, name).shape, []).append(name)
        for i, (shape, names) in enumerate(by_shape.items()):
            stacked = np.empty((len(names), *shape), np.float32)
            for j, name in enumerate(names):
                stacked[j] = self._weights.matrix(bucket, name)
            put(group, f"map{i}", np.array(names), (f"map{i}",))
            put(group, f"weight_gradient{i}", stacked, (f"map{i}", f"output{i}", "feature"))
