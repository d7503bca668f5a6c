"""Linear maps that read the residual stream, against what is known of each family."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from isotrace.capture.maps import find_maps
from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.errors import DataError

GATED = (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("mlp.gate_proj", "mlp.up_proj"))
BERT = (("attention.self.query", "attention.self.key", "attention.self.value"), ("intermediate.dense",))
KNOWN = {
    "gpt_neox": (("attention.query_key_value",), ("mlp.dense_h_to_4h",)),
    "llama": GATED,
    "olmo": GATED,
    "olmo2": GATED,
    "gpt2": (("attn.c_attn",), ("mlp.c_fc",)),
    "opt": (("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"), ("fc1",)),
    "qwen3": GATED,
    "eurobert": GATED,
    "modernbert": (("attn.Wqkv",), ("mlp.Wi",)),
    "bert": BERT,
    "roberta": BERT,
    "distilbert": (("attention.q_lin", "attention.k_lin", "attention.v_lin"), ("ffn.lin1",)),
    "t5": (
        ("layer.0.SelfAttention.q", "layer.0.SelfAttention.k", "layer.0.SelfAttention.v"),
        ("layer.1.DenseReluDense.wi",),
    ),
}
BLOCKS = ["block.0", "block.2"]


@pytest.mark.parametrize("family", KNOWN)
def test_names_and_shared_inputs_are_those_of_the_family(family, make_case):
    """Neither the output projection of attention nor that of the MLP is among them."""
    model = make_case(family).model
    found = find_maps(model, find_sites(model), BLOCKS)
    groups = {}
    for name, reader in found.reads.items():
        groups.setdefault(reader, set()).add(name)
    expected = [{f"{block}:{name}" for name in group} for block in BLOCKS for group in KNOWN[family]]
    assert sorted(map(sorted, groups.values())) == sorted(map(sorted, expected))
    assert set(groups) <= set(found.modules) == set(found.reads)
    for name, module in found.modules.items():
        block, part = name.split(":")
        assert module is find_sites(model)[block].get_submodule(part)


def test_what_a_map_reads_is_the_stream_or_its_norm(make_case):
    """GPT-NeoX norms the stream once for attention and once for the MLP; OLMo 2 reads it as it is."""
    case = make_case("gpt_neox")
    sites = find_sites(case.model)
    found = trace(case.model, sites, case.ids, case.targets, maps=find_maps(case.model, sites, ["block.1"]).modules)
    stream = found.activations["block.0"]
    for part, norm in (
        ("attention.query_key_value", "input_layernorm"),
        ("mlp.dense_h_to_4h", "post_attention_layernorm"),
    ):
        expected = sites["block.1"].get_submodule(norm)(stream)
        torch.testing.assert_close(found.map_inputs[f"block.1:{part}"], expected)
    case = make_case("olmo2")
    sites = find_sites(case.model)
    found = trace(case.model, sites, case.ids, case.targets, maps=find_maps(case.model, sites, ["block.1"]).modules)
    assert torch.equal(found.map_inputs["block.1:self_attn.q_proj"], found.activations["block.0"])


def test_hooks_and_parameters_are_left_as_they_were(make_case):
    model = make_case("llama").model
    find_maps(model, find_sites(model), BLOCKS)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    assert not any(p.requires_grad for p in model.parameters())


class Odd(nn.Module):
    """A block whose only map reads a product, which is no stream."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, hidden_states):
        return hidden_states + self.gate(hidden_states * hidden_states)


class OddModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(pad_token_id=None)
        self.embed, self.block = nn.Embedding(8, 4), Odd()

    def forward(self, input_ids):
        return self.block(self.embed(input_ids))


def test_a_block_without_such_a_map_is_named():
    model = OddModel().requires_grad_(False)
    with pytest.raises(DataError, match=r"OddModel: no linear map of block\.0 reads the residual stream"):
        find_maps(model, {"embed": model.embed, "block.0": model.block}, ["block.0"])
