"""The companion table: each number equals its definition on the right rows, and every NaN has its reason."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isotrace.errors import ConfigError
from isotrace.geometry import cosine
from isotrace.geometry.bases import Basis
from isotrace.geometry.companions import COLUMNS, geometry_table
from isotrace.geometry.metrics import METRICS, metric
from isotrace.geometry.rows import Bucket

SITES = ("embed", "block.0", "final_norm")
SPEC = {
    "seed": 0,
    "metrics": sorted(METRICS),
    "rank": 2,
    "method": "pca",
    "max_rows_dimension": 200,
    "groups": 10,
    "confidence": 0.95,
    "min_rows": 32,
}


def bucket(seed: int = 0, n: int = 96, d: int = 8) -> Bucket:
    random = np.random.default_rng(seed)
    gradients = random.normal(size=(3, n, d)).astype(np.float32)
    gradients[:, :7] = 0
    return Bucket(
        name="b1",
        sites=SITES,
        activations=(random.normal(size=(3, n, d)) + 1).astype(np.float32),
        gradients=gradients,
        token_id=np.arange(n),
        sequence=np.repeat(np.arange(n // 4), 4),
        position=np.tile(np.arange(1, 5), n // 4),
        loss=np.abs(random.normal(size=n)).astype(np.float32),
        masked=np.zeros(n, bool),
    )


def basis(d: int = 8, sites: tuple[str, ...] = SITES) -> Basis:
    vectors = np.broadcast_to(np.eye(d)[:, :3], (len(sites), d, 3))
    return Basis("fixed", "pca", sites, vectors, np.ones((len(sites), 3)), np.full(len(sites), 96))


def cell(table: pd.DataFrame, metric: str, site: str, quantity: str = "activation") -> pd.Series:
    found = table[(table.metric == metric) & (table.site == site) & (table.quantity == quantity)]
    assert len(found) == 1
    return found.iloc[0]


def test_rows_columns_and_reasons() -> None:
    table = geometry_table(bucket(), [basis()], SPEC, previous=bucket(1))
    assert list(table.columns) == COLUMNS
    # loss once; zero_rows and two orders for gradients; displacement and curvature for activations only
    both = len(METRICS) - 6
    assert len(table) == 3 * (2 * both + 5) + 1
    missing = table[["value", "lo", "hi"]].isna().any(axis=1)
    assert (table.reason[missing] != "").all()
    assert (table.reason[~missing] == "").all()
    inside = table[~missing]
    assert ((inside.lo <= inside.value) & (inside.value <= inside.hi)).all()


def test_gradients_use_their_non_zero_rows() -> None:
    one = bucket()
    row = cell(geometry_table(one, [], SPEC), "mean_cosine", "block.0", "gradient")
    assert row.n_tokens == 89
    assert row.value == pytest.approx(cosine.mean_cosine(one.gradients[1, 7:].astype(float)))
    assert cell(geometry_table(one, [], SPEC), "zero_rows", "block.0", "gradient").value == 7


def test_loss_is_over_masked_rows_where_the_objective_masks() -> None:
    causal = bucket()
    row = cell(geometry_table(causal, [], SPEC), "loss", "final_norm")
    assert (row.value, row.n_tokens) == (pytest.approx(causal.loss.mean(dtype=float)), 96)
    masked = replace(causal, masked=np.arange(96) % 2 == 0, loss=np.where(np.arange(96) % 2 == 0, causal.loss, np.nan))
    row = cell(geometry_table(masked, [], SPEC), "loss", "final_norm")
    assert (row.value, row.n_tokens) == (pytest.approx(causal.loss[::2].mean(dtype=float)), 48)


def test_displacement_is_matched_by_sequence_and_position() -> None:
    """All of the move lies in the first component, whatever the order in which the earlier rows stand."""
    now = bucket()
    before = now.activations.copy()
    before[:, :, 0] -= np.linspace(1, 2, 96, dtype=np.float32)
    order = np.random.default_rng(2).permutation(96)
    earlier = replace(
        now, activations=before[:, order], sequence=now.sequence[order], position=now.position[order], sites=SITES
    )
    row = cell(geometry_table(now, [basis()], SPEC, previous=earlier), "displacement_in_tangent", "block.0")
    assert row.value == pytest.approx(1.0)
    assert row.n_tokens == 96
    half = replace(earlier, sequence=np.where(earlier.sequence < 12, earlier.sequence, earlier.sequence + 1000))
    row = cell(geometry_table(now, [basis()], SPEC, previous=half), "displacement_in_tangent", "block.0")
    assert row.n_tokens == 48


def test_displacement_equals_a_naive_recomputation() -> None:
    """Row by row, over a tilted basis: squared length inside over squared length, both summed."""
    now, before = bucket(), bucket(1)
    turn = np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))[0]
    tilted = replace(basis(), vectors=np.stack([turn[:, :3]] * 3))
    row = cell(geometry_table(now, [tilted], SPEC, previous=before), "displacement_in_tangent", "block.0")
    inside = whole = 0.0
    for after, ahead in zip(now.activations[1], before.activations[1], strict=True):
        moved = after.astype(float) - ahead.astype(float)
        inside += sum(float(moved @ turn[:, c]) ** 2 for c in range(2))
        whole += float(moved @ moved)
    assert row.value == pytest.approx(inside / whole, rel=1e-12)
    assert row.lo < row.value < row.hi


def test_contact_of_gradients_reads_the_activations_of_the_same_rows() -> None:
    """Every row's gradient is (t, t^2) of its own activation; zero rows, which come first, are left out."""
    random = np.random.default_rng(4)
    u = random.uniform(-1, 1, size=(2000, 1))
    rows = np.concatenate([u, 0.05 * u**2, np.zeros((2000, 6))], axis=1)
    at = u - np.median(u)
    slope = np.concatenate([at, np.zeros((2000, 1)), at**2, np.zeros((2000, 5))], axis=1)
    slope[:50] = 0
    count = np.arange(2000)
    one = Bucket(
        "b0", ("embed",), rows[None], slope[None], count, count // 4, count % 4, np.ones(2000), np.zeros(2000, bool)
    )
    names = ["contact_exponent", "gradient_order_tangent", "gradient_order_normal"]
    table = geometry_table(one, [], {**SPEC, "metrics": names, "rank": 1})
    found = [cell(table, name, "embed", "gradient") for name in names]
    assert [row.value for row in found] == pytest.approx([2, 1, 2], abs=0.2)
    assert {row.n_tokens for row in found} == {1950}


@pytest.mark.parametrize(
    ("bases", "previous", "reason"),
    [
        ([], bucket(1), "no fixed pca basis of rank 2"),
        ([basis(sites=("embed",))], bucket(1), "no fixed pca basis of rank 2"),
        ([basis()], bucket(0), "the same rows"),
        ([basis()], replace(bucket(1), sequence=bucket(1).sequence + 1000), "fewer than 32 rows"),
    ],
    ids=["no basis", "no site", "same checkpoint", "no common rows"],
)
def test_no_displacement_has_a_reason(bases: list[Basis], previous: Bucket, reason: str) -> None:
    row = cell(geometry_table(bucket(), bases, SPEC, previous=previous), "displacement_in_tangent", "final_norm")
    assert np.isnan(row.value)
    assert reason in row.reason


def test_too_few_rows_and_one_sequence() -> None:
    few = geometry_table(bucket(n=16), [], SPEC)
    assert set(few[few.metric != "zero_rows"].reason) == {"fewer than 32 rows"}
    one = replace(bucket(), sequence=np.zeros(96, int))
    row = cell(geometry_table(one, [], SPEC), "mean_cosine", "embed")
    assert (np.isfinite(row.value), np.isnan(row.lo), row.reason) == (True, True, "no interval from one sequence")


def test_same_input_same_table() -> None:
    first, second = (geometry_table(bucket(), [basis()], SPEC, previous=bucket(1)) for _ in range(2))
    pd.testing.assert_frame_equal(first, second, check_exact=True)


def test_a_new_metric_is_one_function() -> None:
    @metric("largest_entry", interval="no")
    def largest_entry(cloud):  # type: ignore[no-untyped-def]
        return float(np.abs(cloud.values).max())

    try:
        table = geometry_table(bucket(), [], {**SPEC, "metrics": ["largest_entry"]})
        assert cell(table, "largest_entry", "embed").value == pytest.approx(np.abs(bucket().activations[0]).max())
    finally:
        del METRICS["largest_entry"]


def test_an_unknown_metric_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="'isoscroe' is not one of"):
        geometry_table(bucket(), [], {**SPEC, "metrics": ["isoscroe"]})
