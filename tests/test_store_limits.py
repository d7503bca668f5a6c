"""Files of a checkpoint: as many as planned, as few as promised, or one line that says what to change."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from isotrace import grids
from isotrace.capture.moments_store import QUANTITIES, GroupWriter, write_moments
from isotrace.encoding import Encoding
from isotrace.errors import DataError
from isotrace.geometry.moments import moments
from isotrace.grids import SHARD_BYTES
from isotrace.limits import Plan, check_limits
from isotrace.shards import RunWriter
from isotrace.store import create, put, read_manifest
from sealed import MAKING

RNG = np.random.default_rng(0)
COORDINATES = ("token_id", "sequence", "draw", "position", "target_id", "masked", "split", "loss")


def written(folder: Path, plan: Plan) -> int:
    """Write stores of that plan from made-up numbers; how many files they took."""
    sites = [f"block.{i}" for i in range(plan.sites)]
    with (
        create(folder / "cache.json", {}, MAKING) as cache,
        create(folder / "moments.json", {}, MAKING) as sums,
        create(folder / "attention.json", {}, MAKING) as heads,
    ):
        buckets = [sums.create_group(f"b{i}") for i in range(len(plan.rows))]
        for i, n in enumerate(plan.rows):
            group = cache.create_group(f"b{i}")
            put(group, "site", np.array(sites), ("site",))
            for name in COORDINATES:
                put(group, name, np.arange(1, n + 1), ("token",))
            for name in ("activations", "gradients"):
                writer = RunWriter(group, name, (plan.sites, n, plan.width), encoding=Encoding(plan.dtype))
                writer.append(RNG.standard_normal((plan.sites, n, plan.width)).astype(np.float32))
                writer.close()
            found = moments(RNG.standard_normal((9, plan.width)))
            places = [(s, q, site) for s in (0, 1) for q in QUANTITIES for site in sites]
            write_moments(buckets[i], sites, QUANTITIES, plan.width, [(place, found) for place in places])
            for j, shape in enumerate(plan.matrices):
                put(buckets[i], f"map{j}", np.array(["x"] * shape[0]), (f"map{j}",))
                put(buckets[i], f"weight_gradient{j}", np.ones(shape, np.float32), (f"map{j}", f"output{j}", "feature"))
        if plan.groups:
            GroupWriter(buckets, sites, QUANTITIES, plan.width, plan.groups).close()
        for j, shape in enumerate(plan.heads):
            put(heads, f"sums{j}", np.ones(shape), ("layer", f"value{j}"))
    return sum(len(read_manifest(folder / f"{name}.json")["files"]) for name in ("cache", "moments", "attention"))


@pytest.mark.parametrize(
    "plan",
    [
        Plan(sites=3, width=8, rows=(300,), heads=((2, 40),)),
        Plan(sites=3, width=8, rows=(300, 0, 41), dtype="float16"),
        Plan(sites=2, width=8, rows=(100,), groups=3, matrices=((2, 5, 8), (1, 3, 8)), heads=((2, 40), (1, 20))),
    ],
)
@pytest.mark.parametrize("shard", [SHARD_BYTES, 3000])
def test_as_many_files_are_written_as_planned(tmp_path, monkeypatch, plan, shard):
    monkeypatch.setattr(grids, "SHARD_BYTES", shard)
    monkeypatch.setattr(grids, "CHUNK_BYTES", min(grids.CHUNK_BYTES, shard // 3))
    assert written(tmp_path, plan) == plan.files


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_checkpoint_of_ordinary_size_keeps_to_200_files(dtype):
    """Width 2,048, seven sites, four buckets of 12,000 rows: 5.5 GB of rows in float32."""
    plan = Plan(sites=7, width=2048, rows=(12_000,) * 4, dtype=dtype, heads=((16, 400_000),))
    assert check_limits(plan, "step1") <= 200
    assert plan.allowed == 200


def test_more_buckets_may_take_more_files():
    plan = Plan(sites=7, width=512, rows=(2000,) * 10, heads=((8, 1000),))
    assert 200 < check_limits(plan, "step1") <= plan.allowed == 500


@pytest.mark.parametrize(("rows", "helps"), [(25_000, True), (200_000, False)])
def test_a_plan_beyond_the_limit_is_one_line_that_names_the_keys(rows, helps):
    """float16 is proposed only where it would do."""
    plan = Plan(sites=7, width=2048, rows=(rows,) * 4)
    with pytest.raises(DataError) as caught:
        check_limits(plan, "step1")
    line = str(caught.value)
    assert line.startswith(f"step1: {plan.files} files for 4 buckets of up to {rows} rows at 7 sites of width 2048")
    assert "at most 200" in line
    assert "sample.rows_per_bucket" in line
    assert "capture.sites" in line
    assert ("store.dtype: float16" in line) == helps
    assert "\n" not in line
    if helps:
        assert check_limits(replace(plan, dtype="float16"), "step1") <= 200
