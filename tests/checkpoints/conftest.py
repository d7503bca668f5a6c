"""A tokenizer, token ids and tiny architectures shared by the checkpoint tests."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from isotrace.checkpoints.initialise import initial_model, write_checkpoint
from isotrace.corpus.tokenizer import load_tokenizer, train_tokenizer

SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
ARCHITECTURES: dict[str, dict[str, Any]] = {
    "clm": {"model_type": "gpt_neox", **SIZES, "max_position_embeddings": 16, "hidden_dropout": 0.1},
    "mlm": {"model_type": "modernbert", **SIZES, "max_position_embeddings": 16, "local_attention": 8},
}
TEXTS = [f"the river number {i} runs past stone {i * i} and the moon" for i in range(60)]


@pytest.fixture(scope="session")
def tokenizer_folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One tokenizer folder an objective."""
    folders = {objective: tmp_path_factory.mktemp(objective) for objective in ARCHITECTURES}
    for objective, folder in folders.items():
        train_tokenizer(TEXTS, folder, {"vocab_size": 280, "objective": objective})
    return folders


@pytest.fixture(scope="session")
def ids() -> NDArray[np.int32]:
    """Forty training sequences of 16 ids."""
    return np.random.default_rng(0).integers(5, 270, (40, 16)).astype(np.int32)


@pytest.fixture
def make_checkpoint(tokenizer_folders: dict[str, Path], tmp_path: Path) -> Callable[..., Path]:
    """Write a random checkpoint: objective, seed, name of the folder, changes of the architecture."""

    def make(objective: str = "clm", seed: int = 0, name: str = "checkpoint-0", **changes: Any) -> Path:
        folder = tokenizer_folders[objective]
        architecture = {**ARCHITECTURES[objective], **changes}
        model = initial_model(architecture, objective, load_tokenizer(folder), seed)
        write_checkpoint(model, folder, tmp_path / name)
        return tmp_path / name

    return make


@pytest.fixture
def change_weights() -> Callable[[Path, Callable[[dict[str, Any]], dict[str, Any]]], None]:
    """Rewrite a checkpoint's tensors through a function of the state dict."""
    from safetensors.torch import load_file, save_file

    def change(folder: Path, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        file = folder / "model.safetensors"
        save_file(edit(load_file(file)), file, {"format": "pt"})

    return change
