"""Tables: contract order and types, natural sorting, reasons, joins, bytes."""

import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace import tables
from isotrace.errors import DataError
from isotrace.gather import audit_table, gather, join_keys, lock_status, stage_table, with_status, without_duplicates
from isotrace.results import write_stage
from isotrace.schema import SCHEMAS, columns

LOCK = {
    "model": "m",
    "total_steps": 100,
    "checkpoints": [
        {"id": "step0", "step": 0, "tokens_seen": None, "status": "ok"},
        {"id": "step30", "step": 30, "tokens_seen": 3000, "status": "duplicate"},
        {"id": "step70", "step": 70, "tokens_seen": 7000, "status": "ok"},
    ],
}


def geometry(**changes):
    row = {"site": "block.0", "layer": 0, "bucket": "b0", "quantity": "activation", "n_tokens": 9}
    row |= {"metric": "mean_cosine", "value": 0.5, "lo": 0.4, "hi": 0.6, "reason": ""}
    return pd.DataFrame([row | changes])


def joined(frame, checkpoint="step30"):
    return join_keys(frame, checkpoint=checkpoint, study="s", model="m", seed=0, lock=LOCK, early=0.3, late=0.7)


CONTRACT = {
    "energy": """study model seed checkpoint step tokens_seen progress phase site layer bucket quantity basis method
        rank n_tokens energy energy_lo energy_hi enrichment null_space null_mean null_mean_exact null_sd_exact ratio z
        p_value n_nulls reason""",
    "frequency": """study model seed checkpoint step tokens_seen progress phase site layer kind of n_types spearman
        lo hi reason""",
    "attention": """model seed checkpoint step progress phase layer head query_bucket key_bucket mean_norm_q
        mean_norm_k drift_q drift_k mean_cosine_qk mean_dot_qk k_sign sigma1_share_q entropy max_weight logit_sd
        reason""",
}


@pytest.mark.parametrize("stage", CONTRACT)
def test_contract_columns_are_those_promised(stage):
    assert [c.name for c in columns(stage)] == CONTRACT[stage].split()


def test_every_number_has_a_unit():
    assert all(c.unit or c.kind == "text" or c.name == "seed" for table in SCHEMAS.values() for c in table)


def test_layers():
    sites = ("embed", "block.0", "block.3", "final_norm")
    assert [tables.layer_of(s, sites) for s in sites] == [-1, 0, 3, 4]
    with pytest.raises(DataError, match="head"):
        tables.layer_of("head", sites)


def test_rows_sort_by_step_depth_and_natural_bucket():
    parts = [
        joined(geometry(site=site, layer=layer, bucket=bucket), checkpoint)
        for site, layer in (("final_norm", 12), ("block.10", 10), ("block.2", 2), ("embed", -1))
        for bucket in ("b10", "b2")
        for checkpoint in ("step70", "step0")
    ]
    table = gather("geometry", parts)
    assert list(table["step"]) == [0] * 8 + [70] * 8
    assert list(table["site"][:8:2]) == ["embed", "block.2", "block.10", "final_norm"]
    assert list(table["bucket"][:2]) == ["b2", "b10"]


@settings(max_examples=10)
@given(st.permutations(range(6)))
def test_order_of_parts_does_not_matter(order):
    parts = [joined(geometry(bucket=f"b{i}")) for i in range(6)]
    expected = gather("geometry", parts)
    pd.testing.assert_frame_equal(gather("geometry", [parts[i] for i in order]), expected)


def test_join_gives_phase_and_progress():
    table = gather("geometry", [joined(geometry(), c) for c in ("step0", "step30", "step70")])
    assert list(table["phase"]) == ["early", "early", "late"]
    assert list(table["progress"]) == [0.0, 0.3, 0.7]
    assert math.isnan(table["tokens_seen"][0])
    with pytest.raises(DataError, match="step5"):
        joined(geometry(), "step5")


def test_attention_drops_the_keys_it_does_not_have():
    row = {c.name: 0.0 if c.kind == "real" else 0 if c.kind == "integer" else "all" for c in columns("attention")}
    frame = pd.DataFrame([row | {"reason": ""}]).drop(columns=["model", "seed", "checkpoint", "step", "progress"])
    assert list(gather("attention", [joined(frame.drop(columns="phase"))])["model"]) == ["m"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"value": np.nan}, "no value in \\['value'\\]"),
        ({"reason": "why"}, "nothing is missing"),
        ({"n_tokens": 1.5}, "n_tokens is not integer"),
        ({"surplus": 1}, "surplus"),
    ],
)
def test_wrong_rows_are_refused(changes, message):
    with pytest.raises(DataError, match=message):
        tables.finish("geometry", geometry(**changes), scope="checkpoint")


def test_doubled_key_and_missing_column_are_refused():
    with pytest.raises(DataError, match="two rows"):
        tables.finish("geometry", pd.concat([geometry(), geometry(value=0.1)]), scope="checkpoint")
    with pytest.raises(DataError, match="missing columns \\['hi'\\]"):
        tables.finish("geometry", geometry().drop(columns="hi"), scope="checkpoint")
    with pytest.raises(DataError, match="no table is called"):
        tables.finish("geometries", geometry())


@pytest.mark.parametrize("stage", [s for s in SCHEMAS if "reason" in [c.name for c in SCHEMAS[s]]])
def test_tombstones_pass_the_same_checks_and_round_trip(tmp_path, stage):
    grave = tables.tombstone(stage, "truncated weights", **({"bucket": "b3"} if stage == "energy" else {}))
    table = gather(stage, [joined(grave)])
    tables.write(tmp_path / "t.parquet", table, stage)
    pd.testing.assert_frame_equal(tables.read(tmp_path / "t.parquet"), table)
    assert list(table["reason"]) == ["truncated weights"]
    with pytest.raises(DataError, match="needs a reason"):
        tables.tombstone(stage, "")


def test_bytes_units_and_round_trip(tmp_path):
    table = gather("geometry", [joined(geometry(value=0.1 + 0.2)), joined(geometry(bucket="b1"))])
    for name, frame in (("a", table), ("b", table.iloc[::-1])):
        tables.write(tmp_path / f"{name}.parquet", frame, "geometry")
        tables.write_csv(tmp_path / f"{name}.csv", frame, "geometry")
    for suffix in ("parquet", "csv"):
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", "a.parquet", "b.csv", "b.parquet"]
    pd.testing.assert_frame_equal(tables.read(tmp_path / "a.parquet"), table)
    assert pq.read_schema(tmp_path / "a.parquet").field("step").metadata[b"unit"] == b"optimizer steps"
    text = (tmp_path / "a.csv").read_text()
    assert "0.30000000000000004" in text
    assert "np." not in text


def test_unreadable_table_is_named(tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"half a table")
    with pytest.raises(DataError, match=r"t\.parquet"):
        tables.read(tmp_path / "t.parquet")


def test_duplicates_stay_in_the_table_and_can_be_left_out():
    table = gather("geometry", [joined(geometry(), c) for c in ("step0", "step30")])
    assert lock_status(LOCK)["step30"] == "duplicate"
    assert list(without_duplicates(table, [LOCK])["checkpoint"]) == ["step0"]
    assert list(with_status(table, [LOCK])["status"]) == ["ok", "duplicate"]
    assert "status" not in with_status(table.drop(columns="checkpoint"), [LOCK])


def test_audit_table_is_sorted_by_step():
    finding = {"model": "m", "finding": "duplicate", "severity": "warning", "detail": "same weights as step0"}
    audit = audit_table([finding | {"checkpoint": f"step{s}", "step": s} for s in (30, 4)])
    assert list(audit["step"]) == [4, 30]
    assert audit_table([]).empty


def test_stage_table_joins_files_and_says_why_one_is_empty(tmp_path):
    lock = {"model": "m", "total_steps": 100, "checkpoints": [
        {"id": "step0", "step": 0, "status": "ok", "reason": ""},
        {"id": "step70", "step": 70, "status": "broken", "reason": "truncated weights"},
    ]}  # fmt: skip
    paths = [tmp_path / "geometry" / "m" / c / "b0.parquet" for c in ("step70", "step0")]
    write_stage(paths[0], None, "geometry")
    write_stage(paths[1], geometry().drop(columns="layer"), "geometry", ["embed", "block.0"])
    table = stage_table("geometry", paths, [lock], study="s", seeds={"m": 1}, early=0.3, late=0.7)
    assert list(table["reason"]) == ["", "truncated weights"]
    assert list(table["bucket"]) == ["b0", "b0"]
    assert list(table["phase"]) == ["early", "late"]
    with pytest.raises(DataError, match="no lock file"):
        stage_table("geometry", paths, [], study="s", seeds={}, early=0.3, late=0.7)
