"""Intervals over groups of sequences and the mass of key buckets, against leaving out sequences and adding by hand."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_attention import BUCKETS, HEADS, LENGTH, naive, sequence, total

from isotrace.geometry.attention import attention_table
from isotrace.geometry.attention_intervals import COLUMNS, attention_intervals
from isotrace.geometry.attention_mass import NONE, attention_mass
from isotrace.geometry.head_sums import Grouped, less, pack, unpack, without_second

GROUPS = [[0, 1], [2, 3], [4], [5, 6, 7]]


def grouped(sequences, groups=GROUPS, buckets=BUCKETS) -> Grouped:
    everyone = [i for members in groups for i in members]
    whole, *parts = (total([sequences[i] for i in members], buckets=buckets) for members in (everyone, *groups))
    return Grouped(whole, tuple(without_second(part) for part in parts))


def test_intervals_are_those_of_leaving_out_each_group() -> None:
    """Margins from the naive loops over the sequences that are left."""
    sequences = [sequence(s) for s in range(8)]
    table = attention_intervals([grouped(sequences)], 0.9)
    assert list(table.columns) == COLUMNS
    assert (table["reason"] == "").all()
    left = [[sequences[i] for other in GROUPS if other is not group for i in other] for group in GROUPS]
    chosen = {"b0": [0], "b1": [1]}
    for (head, query, key), rows in table.groupby(["head", "query_bucket", "key_bucket"]):
        read = head, chosen.get(query, [0, 1]), chosen.get(key)
        whole, parts = naive(sequences, *read), [naive(some, *read) for some in left]
        for row in rows.to_dict("records"):
            values = np.array([part[row["column"]] for part in parts])
            half = stats.t.ppf(0.95, 3) * np.sqrt(3 / 4 * np.sum((values - values.mean()) ** 2))
            assert row["value"] == pytest.approx(whole[row["column"]], rel=1e-9)
            assert row["hi"] - row["value"] == pytest.approx(half, rel=1e-6, abs=1e-12)
            assert row["value"] - row["lo"] == pytest.approx(half, rel=1e-6, abs=1e-12)


def test_values_are_those_of_the_attention_table_at_pairs_with_all_on_a_side() -> None:
    sums = grouped([sequence(s) for s in range(8)])
    table = attention_table([sums.total]).set_index(["head", "query_bucket", "key_bucket"])
    found = attention_intervals([sums], 0.95)
    for row in found.to_dict("records"):
        at = row["head"], row["query_bucket"], row["key_bucket"]
        assert row["value"] == pytest.approx(table.loc[at, row["column"]], rel=1e-12)
        assert "all" in at
    assert set(found[found["column"] == "drift_q"]["key_bucket"]) == {"all"}
    assert len(found) == HEADS * (3 + 3 + 5 * 5)


def mass_by_hand(sequences, head, query_in, key_bucket) -> tuple[float, float]:
    mass, share = [], []
    for one in sequences:
        for t in range(1, LENGTH):  # the first sees one key
            if one["bucket"][t] in query_in:
                w = np.exp(one["logits"][head, t, : t + 1])
                mine = one["bucket"][: t + 1] == key_bucket
                mass.append(w[mine].sum() / w.sum())
                share.append(mine.mean())
    return float(np.mean(mass)), float(np.mean(share))


def test_mass_is_the_weight_that_a_buckets_keys_receive() -> None:
    sequences = [sequence(s) for s in range(8)]
    table = attention_mass([grouped(sequences)], 0.95)
    assert len(table) == HEADS * 3 * 3
    for row in table.to_dict("records"):
        query = {"b0": [0], "b1": [1]}.get(row["query_bucket"], [0, 1])
        mass, share = mass_by_hand(sequences, row["head"], query, {"b0": 0, "b1": 1, NONE: -1}[row["key_bucket"]])
        assert row["mass"] == pytest.approx(mass, rel=1e-9)
        assert row["share"] == pytest.approx(share, rel=1e-9)
        assert row["log_ratio"] == pytest.approx(np.log(mass / share), rel=1e-9)
        assert row["lo"] < row["log_ratio"] < row["hi"]
    whole = table.groupby(["head", "query_bucket"])[["mass", "share"]].sum()
    np.testing.assert_allclose(whole, 1)


def test_uniform_attention_gives_every_bucket_its_share_and_a_planted_sink_more() -> None:
    uniform, planted = [], []
    for s in range(8):
        one = sequence(s)
        flat = np.zeros_like(one["logits"])
        uniform.append(one | {"logits": flat})
        planted.append(one | {"logits": flat + np.log(3) * (one["bucket"] == 0)})
    np.testing.assert_allclose(attention_mass([grouped(uniform)], 0.95)["log_ratio"], 0, atol=1e-12)
    sink = attention_mass([grouped(planted)], 0.95).query("query_bucket == 'all' and key_bucket == 'b0'")
    assert (sink["lo"] > 0).all()
    assert (sink["hi"] < np.log(3)).all()


def test_what_has_no_interval_says_why() -> None:
    sequences = [sequence(s) for s in range(2)]
    one = attention_intervals([grouped(sequences, [[0, 1]])], 0.95)
    assert set(one["reason"]) == {"no interval: one group of sequences"}
    assert one["value"].notna().all()
    assert one["lo"].isna().all()
    sequences[1]["bucket"][:] = 0
    found = attention_intervals([grouped(sequences, [[0], [1]])], 0.95).set_index(["column", "query_bucket"])
    assert set(found.loc[("drift_q", "b1"), "reason"]) == {
        "no interval: without one group of sequences nothing of this is left"
    }
    assert set(found.loc[("drift_q", "b0"), "reason"]) == {""}
    mass = attention_mass([grouped(sequences, [[0], [1]])], 0.95).query("query_bucket == 'b1'")
    assert mass["lo"].isna().all()
    nobody = [one | {"bucket": np.zeros(LENGTH, int)} for one in sequences]
    empty = attention_mass([grouped(nobody, [[0], [1]])], 0.95).set_index(["query_bucket", "key_bucket"])
    assert set(empty.loc[("b1", "b0"), "reason"]) == {"no query of this bucket sees two keys"}
    assert set(empty.loc[("b0", NONE), "reason"]) == {"no query sees one of these keys"}


def test_sums_without_second_moments_survive_packing_and_subtraction() -> None:
    sums = grouped([sequence(s) for s in range(8)])
    part = sums.groups[0]
    shape = {"heads": HEADS, "key_heads": 2, "width": 5}
    again = unpack(pack(part), 0, BUCKETS, second=False, **shape)
    np.testing.assert_array_equal(pack(again), pack(part))
    rest = less(without_second(sums.total), part)
    others = total([sequence(s) for s in range(2, 8)])
    np.testing.assert_allclose(pack(rest), pack(without_second(others)), atol=1e-12)


def test_where_all_is_the_one_bucket_it_is_every_query_and_every_visible_key() -> None:
    sequences = [sequence(s) for s in range(8)]
    merged = [one | {"bucket": np.minimum(one["bucket"], 0)} for one in sequences]
    split, whole = grouped(sequences), grouped(merged, buckets=("all",))
    tables = (lambda g: attention_table([g.total]), lambda g: attention_intervals([g], 0.9))
    for table in tables:
        expected, found = table(split), table(whole)
        expected = expected[(expected["query_bucket"] == "all") & (expected["key_bucket"] == "all")]
        pd.testing.assert_frame_equal(found.reset_index(drop=True), expected.reset_index(drop=True))
    mass = attention_mass([whole], 0.9)
    assert list(mass["key_bucket"]) == ["all", NONE] * HEADS
    assert set(mass["query_bucket"]) == {"all"}
