"""Attention sums by family against the weights that the family's own eager path returns, and its own projections."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch
from families import SIZE, model_of
from transformers import AutoConfig, AutoModel
from transformers.models.falcon.modeling_falcon import apply_rotary_pos_emb as rotate_falcon
from transformers.models.gpt_oss.modeling_gpt_oss import apply_rotary_pos_emb as rotate_gpt_oss
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as rotate

from attention_oracle import naive
from isotrace.capture import scores
from isotrace.capture.attention import attention_sums, grouped_sums

BUCKETS = ("b0", "b1")
LENGTH = 12
WINDOWED = {"sliding_window": 4, "head_dim": 4, "num_key_value_heads": 2, "num_hidden_layers": 2}
MORE = {
    "gemma2": {"attn_logit_softcapping": 0.7, "query_pre_attn_scalar": 4, **WINDOWED},
    "gpt_oss": {"num_local_experts": 2, "num_experts_per_tok": 1, **WINDOWED},
    "falcon-rotary": {"alibi": False, "multi_query": True, "parallel_attn": True},
    "falcon-alibi": {"alibi": True, "multi_query": False, "parallel_attn": False, "new_decoder_architecture": False},
    "falcon-grouped": {"alibi": False, "new_decoder_architecture": True, "num_kv_heads": 2},
    "canine": {"local_transformer_stride": 5, "downsampling_rate": 4, "num_hash_buckets": 64},
}


def base_of(family):
    """A tiny model with unlike attention weights, without a head."""
    if family not in MORE:
        model = model_of(family)
        return model.get_encoder() if family == "t5" else model.base_model
    config = AutoConfig.for_model(family.split("-")[0], **{**SIZE, "pad_token_id": 0, **MORE[family]})
    torch.manual_seed(0)
    model = AutoModel.from_config(config, attn_implementation="eager").float()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(4 if parameter.ndim > 1 else 1)
        if "sinks" in name:
            parameter.data.normal_()
    model.config.use_cache = False
    return model.eval().requires_grad_(False)


@pytest.fixture(params=["gpt_neox", "llama", "olmo2", "qwen3", "gpt2", "bert", "t5", *MORE])
def family(request):
    return request.param


@pytest.fixture
def ids():
    return torch.randint(4, 40, (3, LENGTH), generator=torch.Generator().manual_seed(1))


def bucket_of(ids):
    bucket = (ids.numpy() % 2).astype(np.int64)
    bucket[:, 0] = -1
    return bucket


def sums_of(model, ids):
    return attention_sums(model, ids.numpy(), bucket_of(ids), BUCKETS, batch_size=2)


def own_weights(model, ids):
    """Attention weights (b, H, T, T) of every layer as the family returns them."""
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with windows_of(model) as windows:
        found = model(input_ids=ids, output_attentions=True).attentions
    model.set_attn_implementation(before)
    layers = [one.double().numpy() for one in found]
    if windows:  # a model that returns the first window only
        layers[0] = np.zeros((len(ids), SIZE["num_attention_heads"], LENGTH, LENGTH))
        at = 0
        for one in windows:
            layers[0][:, :, at : at + one.shape[2], at : at + one.shape[3]] = one.numpy()
            at += one.shape[2]
    return layers


@contextmanager
def windows_of(model):
    """What each call of CANINE's windowed layer returns as weights."""
    windows = []
    if model.config.model_type == "canine":
        inner = model.initial_char_encoder.layer[0].attention.self
        inner.register_forward_hook(lambda _module, _given, output: windows.append(output[1]))
    yield windows


def test_sharpness_is_that_of_the_familys_own_weights(family, ids):
    model, bucket = base_of(family), bucket_of(ids)
    found, weights = sums_of(model, ids), own_weights(model, ids)
    assert len(found) == len(weights) > 1
    for one, w in zip(found, weights, strict=True):
        if family == "gpt_oss":  # what the returned weights lack is the sink's
            w = np.concatenate([w, 1 - w.sum(axis=3, keepdims=True)], axis=3)
        at = bucket
        if w.shape[2] != LENGTH:  # molecules of four characters, the first of them CLS
            at = bucket[:, [0, *range(0, LENGTH - 4, 4)]]
        for name, value in naive(w, at).items():
            np.testing.assert_allclose(getattr(one, name), value, rtol=1e-5, atol=1e-5, err_msg=f"{one.layer} {name}")


def split(states, size=4):
    """(b, T, H * d_h) -> (b, H, T, d_h)."""
    return states.unflatten(-1, (-1, size)).transpose(1, 2)


def llama_like(layer, hidden, cos, sin):
    inner, read = layer.self_attn, layer.input_layernorm(hidden)
    query, key = split(inner.q_proj(read)), split(inner.k_proj(read))
    if hasattr(inner, "q_norm"):
        query, key = inner.q_norm(query), inner.k_norm(key)
    turn = rotate_gpt_oss if cos.shape[-1] < query.shape[-1] else rotate
    return turn(query, key, cos, sin)


def olmo2(layer, hidden, cos, sin):
    inner = layer.self_attn
    query, key = inner.q_norm(inner.q_proj(hidden)), inner.k_norm(inner.k_proj(hidden))
    return rotate(split(query), split(key), cos, sin)


def gpt2(layer, hidden, *_):
    return [split(x) for x in layer.attn.c_attn(layer.ln_1(hidden)).chunk(3, dim=-1)[:2]]


def bert(layer, hidden, *_):
    return [split(f(hidden)) for f in (layer.attention.self.query, layer.attention.self.key)]


def t5(layer, hidden, *_):
    inner = layer.layer[0]
    read = inner.layer_norm(hidden)
    return [split(f(read)) for f in (inner.SelfAttention.q, inner.SelfAttention.k)]


def falcon_grouped(layer, hidden, cos, sin):
    """Two groups of two queries, a key and a value."""
    fused = layer.self_attention.query_key_value(layer.ln_attn(hidden)).unflatten(-1, (2, 4, 4))
    query, key = fused[..., :2, :].flatten(2, 3).transpose(1, 2), fused[..., 2, :].transpose(1, 2)
    return rotate_falcon(query, key, cos, sin)


OWN = {
    "llama": llama_like,
    "qwen3": llama_like,
    "gemma2": llama_like,
    "gpt_oss": llama_like,
    "olmo2": olmo2,
    "gpt2": gpt2,
    "bert": bert,
    "t5": t5,
    "falcon-grouped": falcon_grouped,
}


def layers_of(model):
    return next(m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) > 1)


@pytest.mark.parametrize("family", OWN)
def test_queries_and_keys_are_those_of_the_models_own_projections(family, ids):
    model, bucket = base_of(family), bucket_of(ids)
    found = sums_of(model, ids)
    hidden = model(input_ids=ids, output_hidden_states=True).hidden_states
    turn = (None, None)
    if hasattr(model, "rotary_emb"):
        turn = model.rotary_emb(hidden[0], torch.arange(LENGTH)[None].expand_as(ids))
    for one, layer, h in zip(found, layers_of(model), hidden[:-1], strict=True):
        query, key = (x.double().numpy() for x in OWN[family](layer, h, *turn))
        for b in range(2):
            mine = bucket == b
            q, k = query.transpose(0, 2, 1, 3)[mine], key.transpose(0, 2, 1, 3)[mine]
            for name, value in {"q_sum": q.sum(0), "k_sum": k.sum(0)}.items():
                np.testing.assert_allclose(getattr(one, name)[b], value, rtol=1e-5, atol=1e-5, err_msg=name)
            np.testing.assert_allclose(one.q_norm[b], np.linalg.norm(q, axis=2).sum(0), rtol=1e-5)
            np.testing.assert_allclose(one.q_second[b], np.einsum("nhd,nhe->hde", q, q), rtol=1e-5, atol=1e-5)


def test_groups_of_sequences_add_up_to_the_whole(family, ids):
    """Groups that share batches, whose sums are those of their sequences alone."""
    model, bucket = base_of(family), bucket_of(ids)
    group = np.array([0, 1, 1])
    found = grouped_sums(model, ids.numpy(), bucket, BUCKETS, group=group, batch_size=2)
    alone = [attention_sums(model, ids.numpy()[group == g], bucket[group == g], BUCKETS, batch_size=1) for g in (0, 1)]
    for layer, one in enumerate(found):
        assert len(one.groups) == 2
        for name in ("q_sum", "k_norm", "entropy", "mass", "share", "rows"):
            for part, other in zip(one.groups, alone, strict=True):
                expected = getattr(other[layer], name)
                np.testing.assert_allclose(getattr(part, name), expected, rtol=1e-4, atol=1e-5, err_msg=name)
            whole = sum(getattr(part, name) for part in one.groups)
            np.testing.assert_allclose(getattr(one.total, name), whole, rtol=1e-12)
        second = sum(other[layer].q_second for other in alone)
        np.testing.assert_allclose(one.total.q_second, second, rtol=1e-4, atol=1e-5)


def test_runs_of_rows_change_last_digits_only(family, ids, monkeypatch):
    model = base_of(family)
    whole = sums_of(model, ids)
    monkeypatch.setattr(scores, "RUN_BYTES", 1)  # a row at a time
    for a, b in zip(whole, sums_of(model, ids), strict=True):
        for name in ("entropy", "max_weight", "logit_sd", "rows", "mass", "share"):
            np.testing.assert_allclose(getattr(a, name), getattr(b, name), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("family", ["gemma2", "gpt_oss", "t5"])
def test_the_model_computes_what_it_would(family, ids):
    model = base_of(family)
    model.set_attn_implementation("eager")
    usual = model(input_ids=ids).last_hidden_state
    model.set_attn_implementation("isotrace")
    torch.testing.assert_close(model(input_ids=ids).last_hidden_state, usual, rtol=1e-4, atol=1e-5)
