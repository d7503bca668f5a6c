"""Shapes from configs against the models that transformers builds from them, on no device."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

from isotrace.planning.shapes import FAMILIES, shape_of, stored_parameters

MASKED = ("eurobert", "modernbert", "bert", "roberta", "camembert", "distilbert")
SMALL = {"vocab_size": 1000, "hidden_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
GROUPED = SMALL | {"num_key_value_heads": 2, "head_dim": 32, "intermediate_size": 200}


def built(config):
    """The model of a config with shapes only, and its number of parameters."""
    kinds = {"t5": AutoModelForSeq2SeqLM} | dict.fromkeys(MASKED, AutoModelForMaskedLM)
    with torch.device("meta"):
        model = kinds.get(config.model_type, AutoModelForCausalLM).from_config(config)
    return sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_defaults_of_a_family_are_those_of_transformers(family):
    config = AutoConfig.for_model(family)
    shape = shape_of({"model_type": family})
    assert shape == shape_of(config.to_dict())
    assert shape.known
    assert shape.parameters == pytest.approx(built(config), rel=1e-4)


@pytest.mark.parametrize("family", ["llama", "olmo2", "qwen3", "eurobert"])
def test_grouped_queries_and_untied_or_tied_heads_are_counted(family):
    special = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "mask_token_id": 3}
    for tied in (False, True):
        config = AutoConfig.for_model(family, **GROUPED, **special, tie_word_embeddings=tied)
        shape = shape_of(config.to_dict())
        assert shape.parameters == built(config)
        assert (shape.width, shape.layers, shape.heads, shape.key_heads, shape.inner) == (128, 3, 4, 2, 200)


def test_other_families_are_guessed_where_width_and_layers_are_named_and_unknown_elsewhere():
    guessed = shape_of({"model_type": "novel", **GROUPED})
    assert not guessed.known
    assert guessed.parameters == shape_of({"model_type": "llama", **GROUPED}).parameters
    assert shape_of({"model_type": "novel", "vocab_size": 10}) is None
    assert shape_of({}) is None


def test_a_config_with_a_text_part_has_the_shape_of_that_part():
    assert shape_of({"model_type": "outer", "text_config": {"model_type": "llama", **GROUPED}}).width == 128


def test_operations_grow_with_tokens_and_a_tied_head_multiplies_too():
    tied = shape_of({"model_type": "llama", **GROUPED, "tie_word_embeddings": True})
    untied = shape_of({"model_type": "llama", **GROUPED})
    assert untied.flops(200, 10) == 2 * untied.flops(100, 10)
    assert tied.flops(100, 10) == untied.flops(100, 10)
    assert untied.flops(100, 20) > untied.flops(100, 10)


@pytest.mark.parametrize(("layers", "sites"), [(4, 6), (8, 10), (9, 8), (48, 8)])
def test_default_sites_are_all_blocks_up_to_eight_or_six_and_both_ends(layers, sites):
    shape = shape_of({"model_type": "llama", **GROUPED, "num_hidden_layers": layers})
    assert shape.sites(None) == sites
    assert shape.blocks(None) == sites - 2
    assert (shape.sites(["embed", "block.1"]), shape.blocks(["embed", "block.1"])) == (2, 1)


def test_parameters_are_read_from_the_headers_of_shards(tmp_path):
    save_file({"a": torch.zeros(3, 4), "b": torch.zeros(5)}, tmp_path / "model-00001-of-00002.safetensors")
    save_file({"c": torch.zeros(2, 2)}, tmp_path / "model-00002-of-00002.safetensors", metadata={"format": "pt"})
    assert stored_parameters(tmp_path) == 21


@pytest.mark.parametrize("content", [b"", b"\x05", (10**15).to_bytes(8, "little") + b"{}", json.dumps({}).encode()])
def test_files_that_are_no_safetensors_tell_nothing(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert stored_parameters(tmp_path) is None
    assert stored_parameters(tmp_path / "none") is None
