"""Attention as captured, against a recomputation from each model's own projections, norms and rotary embedding."""

import math

import numpy as np
import pytest
import torch
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as rotate_neox
from transformers.models.modernbert.modeling_modernbert import apply_rotary_pos_emb as rotate_modernbert

from isotrace.capture.attention import attention_sums
from isotrace.capture.inputs import forward_arguments
from isotrace.errors import DataError

BUCKETS = ("b0", "b1")
CLOSE = {"rtol": 1e-4, "atol": 1e-6}


def buckets_of(case):
    """Even ids b0, odd b1; the first position of every sequence belongs to none."""
    bucket = (case.ids.numpy() % 2).astype(np.int64)
    bucket[:, 0] = -1
    return bucket


def sums_of(case, batch_size=2):
    return attention_sums(case.model, case.ids.numpy(), buckets_of(case), BUCKETS, batch_size=batch_size)


def heads(states, n):
    """(b, T, n * d_h) -> (b, n, T, d_h)."""
    return states.unflatten(-1, (n, -1)).transpose(1, 2)


def neox_layers(model, ids):
    """Queries, keys after rotation and what is visible, layer by layer, from the inputs of each block."""
    hidden = model(input_ids=ids, output_hidden_states=True).hidden_states
    position = torch.arange(ids.shape[1])[None].expand_as(ids)
    cos, sin = model.gpt_neox.rotary_emb(hidden[0], position)
    causal = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool).tril()
    for i, layer in enumerate(model.gpt_neox.layers):
        projected = layer.attention.query_key_value(layer.input_layernorm(hidden[i]))
        query, key, _ = heads(projected, 4).chunk(3, dim=-1)
        yield (*rotate_neox(query, key, cos, sin), causal)


def modernbert_layers(model, ids):
    """As above; every second layer sees only three positions to either side."""
    hidden = model(input_ids=ids, output_hidden_states=True).hidden_states
    at = torch.arange(ids.shape[1])
    near = (at[:, None] - at[None, :]).abs() <= 3
    for i, layer in enumerate(model.model.layers):
        kind = model.config.layer_types[i]
        cos, sin = model.model.rotary_emb(hidden[0], at[None].expand_as(ids), kind)
        projected = layer.attn.Wqkv(layer.attn_norm(hidden[i]))
        query, key, _ = (heads(part, 4) for part in projected.chunk(3, dim=-1))
        visible = near if kind == "sliding_attention" else torch.ones_like(near)
        yield (*rotate_modernbert(query, key, cos, sin), visible)


LAYERS = {"gpt_neox": neox_layers, "modernbert": modernbert_layers}


def naive(query, key, visible, bucket):
    """Every sum by a loop over sequences, positions and heads; query, key (b, H, T, d_h) float64."""
    n, h, length, d = query.shape
    names = ("entropy", "max_weight", "logit_sd")
    total = {name: np.zeros((2, 3, h)) for name in names} | {"rows": np.zeros((2, 3))}
    total |= {"q_sum": np.zeros((2, h, d)), "k_sum": np.zeros((2, h, d)), "q_second": np.zeros((2, h, d, d))}
    total |= {"q_norm": np.zeros((2, h)), "k_norm": np.zeros((2, h)), "q_count": np.zeros(2)}
    for s in range(n):
        for t in range(length):
            b = bucket[s, t]
            if b < 0:
                continue
            q, k = query[s, :, t], key[s, :, t]
            total["q_count"][b] += 1
            total["q_sum"][b] += q
            total["k_sum"][b] += k
            total["q_norm"][b] += np.linalg.norm(q, axis=1)
            total["k_norm"][b] += np.linalg.norm(k, axis=1)
            total["q_second"][b] += q[:, :, None] * q[:, None, :]
            for column in range(3):
                seen = visible[t] & ((bucket[s] == column) | (column == 2))
                if seen.sum() < 2:
                    continue
                total["rows"][b, column] += 1
                for head in range(h):
                    logits = key[s, head][seen] @ q[head] / math.sqrt(d)
                    weights = np.exp(logits - logits.max())
                    weights /= weights.sum()
                    total["entropy"][b, column, head] -= weights @ np.log(weights) / np.log(len(weights))
                    total["max_weight"][b, column, head] += weights.max()
                    total["logit_sd"][b, column, head] += logits.std()
    return total


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("family", LAYERS)
def test_sums_are_those_of_the_models_own_queries_and_keys(make_case, family, batch_size):
    case = make_case(family)
    found = sums_of(case, batch_size)
    layers = list(LAYERS[family](case.model, case.ids))
    assert [one.layer for one in found] == [0, 1, 2]
    for one, (query, key, visible) in zip(found, layers, strict=True):
        expected = naive(query.double().numpy(), key.double().numpy(), visible.numpy(), buckets_of(case))
        for name, value in expected.items():
            np.testing.assert_allclose(getattr(one, name), value, err_msg=f"layer {one.layer} {name}", **CLOSE)


def test_a_sliding_window_hides_what_is_out_of_it(make_case):
    """Rows that see two keys of a bucket are fewer where the window is short."""
    case = make_case("modernbert")
    kinds, bucket = case.model.config.layer_types, np.zeros_like(case.ids.numpy())
    assert set(kinds) == {"full_attention", "sliding_attention"}
    # The first two positions are one bucket, the rest the other: only queries at 2 and 3 see both through the window.
    bucket[:, 1:] = 1
    bucket[:, 1] = 0
    found = attention_sums(case.model, case.ids.numpy(), bucket, BUCKETS, batch_size=3)
    pairs = {kind: one.rows[1, 0] for kind, one in zip(kinds, found, strict=True)}
    assert pairs == {"full_attention": 3 * 10, "sliding_attention": 3 * 2}


def test_logits_are_those_of_the_models_usual_attention(case):
    given = forward_arguments(case.model, case.ids, case.targets)
    usual = case.model(**given).logits
    case.model.set_attn_implementation("isotrace")
    ours = case.model(**given).logits
    torch.testing.assert_close(ours, usual, rtol=1e-4, atol=1e-5 * float(usual.abs().max()))


def test_the_model_keeps_its_attention(case):
    sums_of(case)
    assert case.model.config._attn_implementation == "sdpa"


def test_grouped_keys_are_counted_once_a_group(case):
    found = sums_of(case)
    keys = getattr(case.model.config, "num_key_value_heads", None) or 4
    assert all(one.k_sum.shape == (2, keys, 4) for one in found)
    assert all(one.q_sum.shape == (2, 4, 4) for one in found)


def test_sums_do_not_depend_on_the_batch_but_in_their_last_digits(case):
    for a, b in zip(sums_of(case, 1), sums_of(case, 4), strict=True):
        for name in ("q_sum", "k_norm", "q_second", "entropy", "rows"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), **CLOSE)


def test_two_captures_are_equal_to_the_bit(case):
    for a, b in zip(sums_of(case), sums_of(case), strict=True):
        assert a.entropy.tobytes() == b.entropy.tobytes()
        assert a.q_second.tobytes() == b.q_second.tobytes()


def test_a_model_without_the_seam_is_named():
    from transformers import BloomConfig, BloomForCausalLM

    config = BloomConfig(vocab_size=40, hidden_size=16, n_layer=1, n_head=2, use_cache=False)
    model = BloomForCausalLM(config).eval()
    ids = np.full((1, 6), 5)
    with pytest.raises(DataError, match="BloomForCausalLM: attention is not available"):
        attention_sums(model, ids, np.zeros_like(ids), ("b0",), batch_size=1)
