"""Sites are the modules they are named for, in order of depth; what does not exist is said."""

from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from families import POST_NORM
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from isotrace.capture.inputs import forward_arguments
from isotrace.capture.sites import choose, find_sites
from isotrace.errors import ConfigError, DataError

DECLARED = {"embed": "embed", "blocks": "tower", "final_norm": "last"}


class Odd(nn.Module):
    """A causal toy whose blocks stand in an nn.Sequential: no list that can be told from any other."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(40, 8)
        self.tower = nn.Sequential(*(nn.Sequential(nn.Linear(8, 8), nn.Tanh()) for _ in range(3)))
        self.last = nn.LayerNorm(8)
        self.head = nn.Linear(8, 40)

    def get_input_embeddings(self):
        return self.embed

    def get_output_embeddings(self):
        return self.head

    def forward(self, input_ids):
        return SimpleNamespace(logits=self.head(self.last(self.tower(self.embed(input_ids)))))


class Listed(nn.Module):
    """The same blocks in a list."""

    def __init__(self, blocks):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def names(blocks):
    return ["embed", *(f"block.{i}" for i in range(blocks)), "final_norm"]


def test_every_family_has_its_sites_in_order_of_depth(every):
    sites = find_sites(every.model)
    assert list(sites) == (names(3)[:-1] if every.family in POST_NORM else names(3))
    assert len({id(module) for module in sites.values()}) == len(sites)
    assert len({type(sites[f"block.{i}"]) for i in range(3)}) == 1
    stack = every.model.get_encoder() if every.family == "t5" else every.model
    assert sites["embed"] is stack.get_input_embeddings()


def test_a_blocks_output_is_the_next_ones_input_and_the_norm_ends_the_stack(every):
    sites = find_sites(every.model)
    inputs, outputs, handles = {}, {}, []
    for name, module in sites.items():
        handles.append(module.register_forward_pre_hook(lambda _m, given, name=name: inputs.update({name: given[0]})))
        handles.append(module.register_forward_hook(lambda _m, _i, out, name=name: outputs.update({name: out})))
    found = every.model(**forward_arguments(every.model, *every.padded), output_hidden_states=True)
    for handle in handles:
        handle.remove()
    outputs = {name: out if isinstance(out, torch.Tensor) else out[0] for name, out in outputs.items()}
    hidden = found.encoder_hidden_states if every.family == "t5" else found.hidden_states
    for before, after in pairwise(name for name in sites if name != "embed"):
        assert torch.equal(inputs[after], outputs[before])
    for i, name in enumerate(("block.0", "block.1", "block.2")):
        assert torch.equal(hidden[i], inputs[name])
    if every.family not in POST_NORM:
        assert torch.equal(hidden[-1], outputs["final_norm"])
        assert not torch.equal(hidden[-1], outputs["block.2"])
    assert torch.equal(outputs["embed"], sites["embed"].weight[every.padded_ids])


def test_finding_leaves_no_hook_behind(every):
    find_sites(every.model)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in every.model.modules())


TINY = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "pad_token_id": 2}
BART = {"vocab_size": 40, "d_model": 16, "encoder_layers": 2, "decoder_layers": 2, "decoder_start_token_id": 2}
BART |= {f"{part}_attention_heads": 2 for part in ("encoder", "decoder")}
BART |= {f"{part}_ffn_dim": 16 for part in ("encoder", "decoder")}
OTHERS = {
    # A norm over the embedding is none over the stack, whichever of the two is declared last.
    "bloom": (
        AutoModelForCausalLM,
        {"vocab_size": 40, "hidden_size": 16, "n_layer": 2, "n_head": 2},
        "transformer.ln_f",
    ),
    "mpt": (AutoModelForCausalLM, {"vocab_size": 40, "d_model": 16, "n_layers": 2, "n_heads": 2}, "transformer.norm_f"),
    "bart": (AutoModelForSeq2SeqLM, BART, None),
    "mbart": (AutoModelForSeq2SeqLM, BART, "model.encoder.layer_norm"),
    "openai-gpt": (AutoModelForCausalLM, {"vocab_size": 40, "n_embd": 16, "n_layer": 2, "n_head": 2}, None),
    "opt": (AutoModelForCausalLM, {**TINY, "do_layer_norm_before": False, "word_embed_proj_dim": 8}, None),
    "deberta-v2": (AutoModelForMaskedLM, {**TINY, "intermediate_size": 16}, None),
}


@pytest.mark.parametrize("family", OTHERS)
def test_families_beyond_those_tested_throughout(family):
    """None of them names its blocks or its norm as another does; some do not say which class a block is."""
    auto, fields, norm = OTHERS[family]
    model = auto.from_config(AutoConfig.for_model(family, **fields)).eval()
    sites = find_sites(model)
    assert sites.get("final_norm") is (None if norm is None else model.get_submodule(norm))
    assert "block.1" in sites


XLNET = {"vocab_size": 40, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 16}
UNFIT = {
    "xlnet": (AutoModelForCausalLM, XLNET),  # a stream laid out (T, b, d)
    "albert": (AutoModelForMaskedLM, {**TINY, "embedding_size": 16, "intermediate_size": 16}),  # one block, run thrice
    "xlm": (AutoModelForMaskedLM, {"vocab_size": 40, "emb_dim": 16, "n_layers": 2, "n_heads": 2}),  # parts, no blocks
}


@pytest.mark.parametrize("family", UNFIT)
def test_a_family_that_does_not_fit_is_named_with_what_to_declare(family):
    auto, fields = UNFIT[family]
    model = auto.from_config(AutoConfig.for_model(family, **fields)).eval()
    with pytest.raises(
        DataError, match=rf"{type(model).__name__}: found 0 lists.*models\.NAME\.modules: .embed: "
    ) as raised:
        find_sites(model)
    assert "\n" not in str(raised.value)


def test_a_model_that_takes_no_ids_or_has_no_embedding_is_refused():
    with pytest.raises(DataError, match="Sequential: found 0 lists of blocks"):
        find_sites(nn.Sequential(nn.Linear(2, 2)))
    listed = nn.ModuleList([nn.Linear(2, 2)])
    holder = nn.Module()
    holder.blocks = listed
    with pytest.raises(DataError, match="Module: cannot run on token ids alone"):
        find_sites(holder)


def test_an_embedding_that_never_runs_is_no_site():
    model = Odd()
    model.tower = Listed(model.tower)
    assert find_sites(model)["block.2"] is model.tower.blocks[2]
    model.get_input_embeddings = lambda: nn.Embedding(40, 8)
    with pytest.raises(DataError, match="Odd: no input embedding that runs once"):
        find_sites(model)


def test_declared_sites_are_those_modules():
    model = Odd()
    with pytest.raises(DataError, match="Odd: found 0 lists of blocks"):
        find_sites(model)
    sites = find_sites(model, DECLARED)
    assert list(sites) == names(3)
    assert [*sites.values()] == [model.embed, *model.tower, model.last]
    without = find_sites(model, {"embed": "embed", "blocks": "tower"})
    assert list(without) == names(3)[:-1]


def test_declaring_what_is_found_anyway_changes_nothing(make_case):
    model = make_case("gpt2").model
    declared = {"embed": "transformer.wte", "blocks": "transformer.h", "final_norm": "transformer.ln_f"}
    assert find_sites(model, declared) == find_sites(model)


@pytest.mark.parametrize(
    ("key", "path", "says"),
    [
        ("embed", "wte", "modules.embed: 'wte' is no module of Odd"),
        ("blocks", "tower.9", "modules.blocks: 'tower.9' is no module of Odd"),
        ("blocks", "last", "modules.blocks: 'last' is a LayerNorm, no list of modules"),
        ("final_norm", "ln_f", "modules.final_norm: 'ln_f' is no module of Odd"),
    ],
)
def test_a_declared_path_that_is_not_there_is_a_config_error_with_its_key(key, path, says):
    with pytest.raises(ConfigError, match=says):
        find_sites(Odd(), DECLARED | {key: path})


def test_all_sites_of_a_shallow_model_and_a_spread_of_a_deep_one():
    assert choose(names(8), None) == names(8)
    kept = choose(names(24), None)
    assert kept[0] == "embed"
    assert kept[1] == "block.0"
    assert kept[-2:] == ["block.23", "final_norm"]
    assert len(kept) == 8
    depth = [int(name.removeprefix("block.")) for name in kept[1:-1]]
    assert depth == sorted(depth)
    assert max(b - a for a, b in pairwise(depth)) <= 6


def test_wanted_sites_come_in_order_of_depth():
    assert choose(names(4), ["final_norm", "block.2"]) == ["block.2", "final_norm"]


def test_a_site_that_does_not_exist_is_a_config_error():
    with pytest.raises(ConfigError, match=r"capture.sites: \['block.9'\] not among \['embed'"):
        choose(names(2), ["block.1", "block.9"])
