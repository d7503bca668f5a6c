"""The attention table against a naive recomputation from all queries, keys and weights."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from isotrace.geometry.attention import COLUMNS, attention_table
from isotrace.geometry.head_sums import HeadSums, add, empty_sums, row_sums, token_sums
from isotrace.geometry.sharpness import sharpness, sharpness_by_bucket

BUCKETS = ("b0", "b1")
HEADS, KEY_HEADS, WIDTH, LENGTH = 4, 2, 5, 12


def sequence(seed: int) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    query = random.normal(size=(HEADS, LENGTH, WIDTH)) + 0.8
    key = random.normal(size=(KEY_HEADS, LENGTH, WIDTH)) - 0.3
    logits = query @ np.repeat(key, 2, axis=0).swapaxes(1, 2) / np.sqrt(WIDTH)
    bucket = random.integers(0, 2, size=LENGTH)
    bucket[0] = -1
    return {
        "query": query,
        "key": key,
        "logits": logits,
        "visible": np.tril(np.ones((LENGTH, LENGTH), bool)),
        "bucket": bucket,
    }


def naive(sequences: list[dict[str, np.ndarray]], head: int, query_in: list[int], key_in: list[int] | None) -> dict:
    """Every column by loops over tokens, key_in None for every visible key."""
    queries, keys, rows = [], [], []
    for one in sequences:
        for t in range(LENGTH):
            if one["bucket"][t] in (key_in or [0, 1]):
                keys.append(one["key"][head // 2, t])
            if one["bucket"][t] not in query_in:
                continue
            queries.append(one["query"][head, t])
            seen = [s for s in range(t + 1) if key_in is None or one["bucket"][s] in key_in]
            if len(seen) >= 2:
                z = one["logits"][head, t, seen]
                w = np.exp(z) / np.exp(z).sum()
                rows.append((-np.sum(w * np.log(w)) / np.log(len(seen)), w.max(), z.std()))
    q, k = np.array(queries), np.array(keys)
    mean_q, mean_k = q.mean(axis=0), k.mean(axis=0)
    _, singular, right = np.linalg.svd(q)
    u = right[0] * np.sign(mean_q @ right[0])
    lengths = np.linalg.norm(q, axis=1).mean(), np.linalg.norm(k, axis=1).mean()
    size = np.linalg.norm(mean_q), np.linalg.norm(mean_k)
    return {
        "mean_norm_q": lengths[0],
        "mean_norm_k": lengths[1],
        "drift_q": size[0] / lengths[0],
        "drift_k": size[1] / lengths[1],
        "mean_cosine_qk": mean_q @ mean_k / (size[0] * size[1]),
        "mean_dot_qk": mean_q @ mean_k,
        "k_sign": np.sign(mean_k @ u),
        "sigma1_share_q": singular[0] ** 2 / np.sum(singular**2),
        **dict(zip(("entropy", "max_weight", "logit_sd"), np.mean(rows, axis=0), strict=True)),
    }


def total(sequences: list[dict[str, np.ndarray]], layer: int = 0, buckets: tuple[str, ...] = BUCKETS) -> HeadSums:
    sums = empty_sums(layer, buckets, heads=HEADS, key_heads=KEY_HEADS, width=WIDTH)
    for one in sequences:
        tokens = {name: one[name] for name in ("query", "key", "bucket")}
        sums = add(sums, token_sums(layer, buckets, **tokens))
        for rows in (slice(0, 5), slice(5, LENGTH)):
            sums = row_sums(
                sums,
                logits=one["logits"][:, rows],
                visible=one["visible"][rows],
                query_bucket=one["bucket"][rows],
                key_bucket=one["bucket"],
            )
    return sums


def test_table_equals_a_naive_recomputation() -> None:
    """Grouped queries (4 heads on 2 key heads), a causal mask, a first token of no bucket."""
    sequences = [sequence(s) for s in range(4)]
    table = attention_table([total(sequences)])
    assert list(table.columns) == COLUMNS
    assert len(table) == HEADS * 3 * 3
    choices = {"b0": [0], "b1": [1]}
    for row in table.to_dict("records"):
        expected = naive(
            sequences, row["head"], choices.get(row["query_bucket"], [0, 1]), choices.get(row["key_bucket"])
        )
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-9), name
    assert (table.reason == "").all()


def test_sharpness_by_bucket_is_that_of_each_buckets_keys_alone() -> None:
    """Also where a bucket underflows beside another, is empty, or has hidden keys with logits that are no numbers."""
    one = sequence(3)
    logits, visible, bucket = one["logits"].copy(), one["visible"], one["bucket"]
    logits[:, :, bucket == 1] -= 2000
    logits[:, ~visible] = np.nan
    found = sharpness_by_bucket(logits, visible, bucket, 3)
    for c, keys in enumerate((bucket == 0, bucket == 1, bucket == 2, bucket > -2)):
        for t in range(LENGTH):
            seen = visible[t] & keys
            assert found.seen[t, c] == seen.sum()
            if seen.sum() >= 2:
                own = sharpness(logits[:, [t]], seen[None])
                for values, value in zip((found.entropy, found.max_weight, found.logit_sd), own, strict=True):
                    np.testing.assert_allclose(values[:, t, c], value[:, 0], rtol=1e-9, atol=1e-12)
    weights = np.exp(np.where(visible, one["logits"] - 2000 * (bucket == 1), -np.inf))
    weights /= weights.sum(axis=2, keepdims=True)
    np.testing.assert_allclose(found.mass[:, :, 0], weights[:, :, bucket == 0].sum(axis=2), rtol=1e-9)


def test_uniform_attention_is_not_sharp() -> None:
    entropy, top, sd = sharpness(np.zeros((2, 3, 8)), np.tril(np.ones((8, 8), bool))[[1, 4, 7]])
    np.testing.assert_allclose(entropy, 1)
    np.testing.assert_allclose(top, [[1 / 2, 1 / 5, 1 / 8]] * 2)
    np.testing.assert_allclose(sd, 0)


def test_one_hot_attention_is_sharp_and_masked_logits_are_not_read() -> None:
    logits = np.array([[[0.0, 900.0, np.nan, np.inf]]])
    entropy, top, sd = sharpness(logits, np.array([[True, True, False, False]]))
    assert (entropy.item(), top.item(), sd.item()) == (pytest.approx(0), pytest.approx(1), pytest.approx(450))


def test_a_common_shift_of_the_logits_does_not_matter() -> None:
    one = sequence(0)
    shifted = {**one, "logits": one["logits"] + 300.0}
    pd.testing.assert_frame_equal(attention_table([total([one])]), attention_table([total([shifted])]), rtol=1e-9)


def test_shared_direction_has_full_drift() -> None:
    one = sequence(0)
    one["query"], one["key"] = np.ones_like(one["query"]), -2 * np.ones_like(one["key"])
    row = attention_table([total([one], layer=3)]).iloc[-1]
    assert (row.layer, row.query_bucket, row.key_bucket) == (3, "all", "all")
    assert (row.drift_q, row.drift_k, row.sigma1_share_q) == (pytest.approx(1), pytest.approx(1), pytest.approx(1))
    assert (row.mean_cosine_qk, row.mean_dot_qk, row.k_sign) == (pytest.approx(-1), pytest.approx(-10), -1)


def test_missing_values_have_reasons() -> None:
    one = sequence(0)
    one["bucket"] = np.where(one["bucket"] == 1, 0, one["bucket"])
    table = attention_table([total([one])])
    reasons = table.groupby(["query_bucket", "key_bucket"]).reason.first()
    assert reasons["b1", "all"] == "no query token in this bucket"
    assert reasons["all", "b1"] == "no key token in this bucket"
    assert reasons["b0", "b0"] == ""
    alone = {**one, "visible": np.eye(LENGTH, dtype=bool)}
    row = attention_table([total([alone])]).iloc[0]
    assert (np.isnan(row.entropy), row.reason) == (True, "no query sees two of these keys")
    silent = {**one, "query": np.zeros_like(one["query"])}
    assert "every query or key is zero" in attention_table([total([silent])]).iloc[0].reason


def test_sums_of_different_layers_or_wrong_shapes_are_refused() -> None:
    sums = total([sequence(0)])
    with pytest.raises(ValueError, match="do not add"):
        add(sums, replace(sums, layer=1))
    with pytest.raises(ValueError, match="k_norm has shape"):
        replace(sums, k_norm=np.zeros((2, 3)))
    with pytest.raises(ValueError, match="4 heads over 3 key heads"):
        empty_sums(0, BUCKETS, heads=4, key_heads=3, width=2)
