"""An audit describes a sound checkpoint and turns every defect into a status and a reason."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotrace.checkpoints.audit import audit_checkpoint
from isotrace.checkpoints.load import load_model

Change = Callable[[Path, Callable[[dict[str, Any]], dict[str, Any]]], None]


def audit(folder: Path, objective: str = "clm", config: str | None = None) -> dict[str, Any]:
    spec = {"id": "step0", "step": 0, "tokens_seen": 0, "objective": objective, "source": {"path": "runs/checkpoint-0"}}
    return audit_checkpoint(folder, {**spec, "config": config, "remote_code": None})


def test_sizes_and_files(make_checkpoint: Callable[..., Path]) -> None:
    folder = make_checkpoint()
    found = audit(folder)
    sizes = {name: found[name] for name in ("width", "layers", "embedding_rows", "context", "input_embedding")}
    assert sizes == {
        "width": 16,
        "layers": 2,
        "embedding_rows": 280,
        "context": 16,
        "input_embedding": "gpt_neox.embed_in",
    }
    assert (found["status"], found["reason"], found["dtype"]) == ("ok", "", "F32")
    assert found["source"] == {"path": "runs/checkpoint-0"}
    content = (folder / "model.safetensors").read_bytes()
    assert found["files"]["model.safetensors"] == hashlib.sha256(content).hexdigest()
    weights = np.concatenate([p.numpy().ravel() for p in load_model(folder, "clm").parameters()])
    assert found["norm"] == pytest.approx(np.linalg.norm(weights.astype(np.float64)), rel=1e-6)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
def test_a_tied_tensor_counts_once(make_checkpoint: Callable[..., Path], objective: str) -> None:
    tied = audit(make_checkpoint(objective, name="a", tie_word_embeddings=True), objective)
    free = audit(make_checkpoint(objective, name="b", tie_word_embeddings=False), objective)
    assert len(free["tensor_digests"]) == len(tied["tensor_digests"]) + 1


def test_a_negative_zero_is_a_zero_and_another_dtype_the_same_values(
    make_checkpoint: Callable[..., Path], change_weights: Change
) -> None:
    bias = "gpt_neox.final_layer_norm.bias"
    folders = [make_checkpoint(name=name) for name in ("a", "b", "c")]
    change_weights(folders[1], lambda state: {**state, bias: -state[bias]})
    change_weights(folders[2], lambda state: {**state, bias: state[bias] + 1e-6})
    plain, negative, other = (audit(folder) for folder in folders)
    assert plain["files"] != negative["files"]
    assert plain["tensors_digest"] == negative["tensors_digest"] != other["tensors_digest"]
    assert bias in plain["constant_tensors"]


def test_sketches_estimate_distances(make_checkpoint: Callable[..., Path], change_weights: Change) -> None:
    head = "embed_out.weight"
    noise = 0.1 * torch.randn(280, 16, generator=torch.Generator().manual_seed(0))
    folders = [make_checkpoint(name=name) for name in ("a", "b")]
    change_weights(folders[1], lambda state: {**state, head: state[head] + noise})
    first, second = (np.array(audit(folder)["sketch"]) for folder in folders)
    assert np.linalg.norm(first - second) == pytest.approx(float(noise.norm()), rel=0.4)


@pytest.mark.parametrize(
    ("damage", "says"),
    [
        (lambda folder: (folder / "model.safetensors").unlink(), "no weights"),
        (lambda folder: (folder / "config.json").unlink(), "no config.json"),
        (lambda folder: (folder / "config.json").write_text("{"), "cannot be loaded"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x10"), "truncated or not a safetensors file"),
        (
            lambda folder: (folder / "model.safetensors").write_bytes((folder / "model.safetensors").read_bytes()[:-8]),
            "cannot be loaded",
        ),
    ],
)
def test_a_defect_is_a_status(make_checkpoint: Callable[..., Path], damage: Callable[[Path], Any], says: str) -> None:
    folder = make_checkpoint()
    damage(folder)
    found = audit(folder)
    assert found["status"] == "broken"
    assert says in found["reason"]
    assert "\n" not in found["reason"]
    assert found["tensors_digest"] is None
    assert set(found) == set(audit(make_checkpoint(name="sound")))


def test_a_checkpoint_that_is_not_there_is_broken(tmp_path: Path) -> None:
    found = audit(tmp_path / "checkpoint-7")
    assert (found["status"], found["files"]) == ("broken", {})


def test_wrong_keys_are_broken(make_checkpoint: Callable[..., Path], change_weights: Change) -> None:
    folder = make_checkpoint()
    change_weights(folder, lambda state: {f"module.{name}": tensor for name, tensor in state.items()})
    assert "missing" in audit(folder)["reason"]


def test_a_config_may_lie_elsewhere(make_checkpoint: Callable[..., Path], tmp_path: Path) -> None:
    whole, bare = make_checkpoint(name="whole"), make_checkpoint(name="bare")
    (bare / "config.json").rename(tmp_path / "config.json")
    assert "no config.json" in audit(bare)["reason"]
    found = audit(bare, config=str(tmp_path))
    assert found["tensors_digest"] == audit(whole)["tensors_digest"]
    assert found["config"] == str(tmp_path)
    assert found["files"]["config.json"] == audit(whole)["files"]["config.json"]
    assert f"{tmp_path / 'none'}: no config.json" in audit(bare, config=str(tmp_path / "none"))["reason"]


def test_dtypes_of_pickled_files_are_read_without_their_numbers(make_checkpoint: Callable[..., Path]) -> None:
    from safetensors.torch import load_file

    folder = make_checkpoint()
    state = load_file(folder / "model.safetensors")
    half = {name: tensor.bfloat16() if tensor.ndim > 1 else tensor for name, tensor in state.items()}
    (folder / "model.safetensors").unlink()
    torch.save(half, folder / "pytorch_model.bin")
    found = audit(folder)
    assert (found["status"], found["dtype"], found["dtypes"]) == ("ok", "F32", {"BF16": 10, "F32": 18})
    content = (folder / "pytorch_model.bin").read_bytes()
    (folder / "pytorch_model.bin").write_bytes(content[:-400])
    assert "pytorch_model.bin: truncated" in audit(folder)["reason"]
