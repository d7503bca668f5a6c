"""A sound folder loads in eval mode and one dtype; every known defect is one line that names it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from isotrace.checkpoints.load import input_embedding_name, load_model
from isotrace.errors import ConfigError, DataError

EMBEDDINGS = {"clm": "gpt_neox.embed_in", "mlm": "model.embeddings.tok_embeddings"}
Change = Callable[[Path, Callable[[dict[str, Any]], dict[str, Any]]], None]


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("tied", [False, True])
def test_a_sound_checkpoint_loads_frozen_and_in_eval_mode(
    make_checkpoint: Callable[..., Path], objective: str, tied: bool
) -> None:
    model = load_model(make_checkpoint(objective, tie_word_embeddings=tied), objective)
    assert not any(module.training for module in model.modules())
    assert not any(parameter.requires_grad for parameter in model.parameters())
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert input_embedding_name(model) == EMBEDDINGS[objective]


@pytest.mark.parametrize("stored", [torch.float16, torch.bfloat16])
def test_the_compute_dtype_does_not_follow_the_file(
    make_checkpoint: Callable[..., Path], change_weights: Change, stored: torch.dtype
) -> None:
    folder = make_checkpoint()
    change_weights(folder, lambda state: {name: tensor.to(stored) for name, tensor in state.items()})
    assert {p.dtype for p in load_model(folder, "clm").parameters()} == {torch.float32}
    assert {p.dtype for p in load_model(folder, "clm", dtype="bfloat16").parameters()} == {torch.bfloat16}


def nan(state: dict[str, Any]) -> dict[str, Any]:
    state["gpt_neox.layers.0.mlp.dense_h_to_4h.weight"][0, 0] = float("nan")
    return state


EDITS: dict[str, tuple[Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "prefix": (lambda s: {f"x.{k}": v for k, v in s.items()}, r"28 missing .* 28 unexpected \(x\.embed_out\.weight"),
    "part": (lambda s: {k: v for k, v in s.items() if "layers.1" not in k}, r"missing \(gpt_neox\.layers\.1"),
    "head": (lambda s: {k: v for k, v in s.items() if k != "embed_out.weight"}, r"1 missing \(lm_head\.weight\)"),
    "extra": (lambda s: {**s, "adapter.weight": s["embed_out.weight"].clone()}, r"1 unexpected \(adapter\.weight\)"),
    "shape": (
        lambda s: {**s, "gpt_neox.embed_in.weight": torch.zeros(5, 16)},
        r"1 mismatched \(gpt_neox\.embed_in\.weight \(5, 16\) for \(280, 16\)\)",
    ),
    "nan": (nan, r"1 tensors are not finite \(gpt_neox\.layers\.0\.mlp\.dense_h_to_4h\.weight\)"),
}


@pytest.mark.parametrize("defect", sorted(EDITS))
def test_weights_that_do_not_fit_are_named(
    make_checkpoint: Callable[..., Path], change_weights: Change, defect: str
) -> None:
    folder = make_checkpoint()
    edit, says = EDITS[defect]
    change_weights(folder, edit)
    with pytest.raises(DataError, match=says) as raised:
        load_model(folder, "clm")
    assert str(folder) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_stored_buffers_do_not_matter(make_checkpoint: Callable[..., Path], change_weights: Change) -> None:
    folder = make_checkpoint()
    old = {
        "gpt_neox.layers.0.attention.bias": torch.ones(1),
        "gpt_neox.layers.0.attention.rotary_emb.inv_freq": torch.ones(4),
    }
    change_weights(folder, lambda state: {**state, **old})
    load_model(folder, "clm")


def test_half_written_folders_say_what_is_missing(make_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    folder = make_checkpoint()
    with pytest.raises(DataError, match="no such checkpoint folder"):
        load_model(tmp_path / "checkpoint-9", "clm")
    weights = folder / "model.safetensors"
    content = weights.read_bytes()
    weights.write_bytes(content[: len(content) // 2])
    with pytest.raises(DataError, match="cannot be loaded"):
        load_model(folder, "clm")
    weights.unlink()
    with pytest.raises(DataError, match="no weights"):
        load_model(folder, "clm")
    (folder / "config.json").unlink()
    with pytest.raises(DataError, match=r"no config\.json"):
        load_model(folder, "clm")


def test_bin_files_load_without_pickled_code(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint()
    state = load_model(folder, "clm").state_dict()
    (folder / "model.safetensors").unlink()
    torch.save(state, folder / "pytorch_model.bin")
    again = load_model(folder, "clm").state_dict()
    assert all(torch.equal(state[name], again[name]) for name in state)


def test_a_config_of_no_known_family_is_named(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint()
    (folder / "config.json").write_text(json.dumps({"hidden_size": 16}))
    with pytest.raises(DataError, match="cannot be loaded as AutoModelForCausalLM"):
        load_model(folder, "clm")


def test_impossible_requests_are_config_errors(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint()
    with pytest.raises(ConfigError, match="float16 overflows"):
        load_model(folder, "clm", dtype="float16")
    with pytest.raises(ConfigError, match="allowed are clm, mlm"):
        load_model(folder, "seq2seq")
