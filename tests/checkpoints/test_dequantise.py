"""A GGUF file, written here from a known model, becomes a folder with that model's weights."""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from isotrace.checkpoints.dequantise import dequantise
from isotrace.checkpoints.initialise import initial_model, write_checkpoint
from isotrace.checkpoints.load import load_model
from isotrace.corpus.tokenizer import load_tokenizer
from isotrace.errors import ConfigError, DataError

WIDTH, HEADS, LAYERS, INNER, CONTEXT = 64, 4, 2, 96, 32
LLAMA = {
    "model_type": "llama",
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "num_hidden_layers": LAYERS,
    "intermediate_size": INNER,
    "max_position_embeddings": CONTEXT,
}
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTSIDE = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def gguf_name(name: str) -> str:
    """Of a tensor of transformers' Llama."""
    module = name.removesuffix(".weight")
    if module in OUTSIDE:
        return f"{OUTSIDE[module]}.weight"
    _, _, layer, within = module.split(".", 3)
    return f"blk.{layer}.{NAMES[within]}.weight"


def interleaved(name: str, values: np.ndarray) -> np.ndarray:
    """Rows of queries and keys in llama.cpp's order: the two halves of a head's rotary pairs alternate."""
    if "q_proj" not in name and "k_proj" not in name:
        return values
    halves = values.reshape(HEADS, 2, WIDTH // HEADS // 2, WIDTH)
    return halves.swapaxes(1, 2).reshape(values.shape)


@pytest.fixture
def write_gguf(tmp_path: Path) -> Callable[..., Path]:
    """Write a Llama's tensors, float32 or quantised, leaving out the one named; ``more`` of the first block."""
    gguf = pytest.importorskip("gguf", reason="the extra gguf is not installed")
    pytest.importorskip("accelerate", reason="the extra gguf is not installed")

    def write(model: torch.nn.Module, quantised: str = "F32", left_out: str = "", **more: np.ndarray) -> Path:
        file = tmp_path / f"tiny.{quantised}.gguf"
        writer = gguf.GGUFWriter(str(file), "llama")
        writer.add_context_length(CONTEXT)
        writer.add_embedding_length(WIDTH)
        writer.add_block_count(LAYERS)
        writer.add_feed_forward_length(INNER)
        writer.add_head_count(HEADS)
        writer.add_head_count_kv(HEADS)
        writer.add_layer_norm_rms_eps(model.config.rms_norm_eps)
        writer.add_rope_dimension_count(WIDTH // HEADS)
        writer.add_vocab_size(model.config.vocab_size)
        kind = gguf.GGMLQuantizationType[quantised]
        for name, tensor in model.state_dict().items():
            if name != left_out:
                values = interleaved(name, tensor.numpy())
                matrix = values.ndim > 1 and quantised != "F32"
                data = gguf.quantize(values, kind) if matrix else values
                writer.add_tensor(gguf_name(name), data, raw_dtype=kind if matrix else None)
        for name, values in more.items():
            writer.add_tensor(f"blk.0.{name}.weight", values)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return file

    return write


@pytest.fixture
def llama(tokenizer_folders: dict[str, Path], tmp_path: Path) -> Path:
    tokenizer = tokenizer_folders["clm"]
    write_checkpoint(initial_model(LLAMA, "clm", load_tokenizer(tokenizer), 0), tokenizer, tmp_path / "llama")
    return tmp_path / "llama"


def test_float32_tensors_come_back_bit_for_bit(write_gguf: Callable[..., Path], llama: Path, tmp_path: Path) -> None:
    original = load_model(llama, "clm")
    file = write_gguf(original)
    found = dequantise(file, llama, "clm", tmp_path / "out")
    again = load_model(tmp_path / "out", "clm")
    for name, tensor in original.state_dict().items():
        assert tensor.equal(again.state_dict()[name]), name
    assert found == {
        "file": "tiny.F32.gguf",
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "model_type": "llama",
        "parameters": sum(p.numel() for p in original.parameters()),
    }


def test_quantised_tensors_are_near(write_gguf: Callable[..., Path], llama: Path, tmp_path: Path) -> None:
    original = load_model(llama, "clm")
    dequantise(write_gguf(original, "Q8_0"), llama, "clm", tmp_path / "out")
    again = load_model(tmp_path / "out", "clm").state_dict()
    for name, tensor in original.state_dict().items():
        assert (tensor - again[name]).abs().max() <= tensor.abs().max() / 127, name


def test_a_missing_tensor_is_named(write_gguf: Callable[..., Path], llama: Path, tmp_path: Path) -> None:
    file = write_gguf(load_model(llama, "clm"), left_out="model.layers.1.mlp.up_proj.weight")
    with pytest.raises(DataError, match=r"1 missing \(model\.layers\.1\.mlp\.up_proj\.weight\)"):
        dequantise(file, llama, "clm", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_tensor_that_transformers_would_leave_out_is_refused(
    write_gguf: Callable[..., Path], llama: Path, tmp_path: Path
) -> None:
    model = load_model(llama, "clm")
    n = sum(p.numel() for p in model.parameters())
    file = write_gguf(model, attn_extra=np.ones((4, 4), np.float32))
    with pytest.raises(DataError, match=rf"it stores {n + 16} values and transformers reads {n} of them"):
        dequantise(file, llama, "clm", tmp_path / "out")


def test_a_truncated_file_and_one_without_a_tokenizer_are_one_line(
    write_gguf: Callable[..., Path], llama: Path, tmp_path: Path
) -> None:
    file = write_gguf(load_model(llama, "clm"))
    with pytest.raises(DataError, match=r"tiny.F32.gguf: its tokenizer cannot be read .* name a folder") as caught:
        dequantise(file, None, "clm", tmp_path / "out")
    assert "\n" not in str(caught.value)
    file.write_bytes(file.read_bytes()[:-4096])
    with pytest.raises(DataError, match=r"tiny.F32.gguf: cannot be loaded as AutoModelForCausalLM") as caught:
        dequantise(file, llama, "clm", tmp_path / "out")
    assert "\n" not in str(caught.value)


def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("gguf", "accelerate"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ConfigError, match=r"mine.gguf: .* needs gguf and accelerate; pip install 'isotrace\[gguf\]'"):
        dequantise(tmp_path / "mine.gguf", None, "clm", tmp_path / "out")
