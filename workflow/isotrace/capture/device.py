"""Where a model runs, and that two runs of it give the same bits (torch's own switches; our choice to set them all)."""

import os

import torch
from torch import nn

from isotrace.checkpoints.memory import keep_freed_memory
from isotrace.errors import ConfigError


def repeatable(threads: int) -> None:
    """For this process, from now on: so many threads, deterministic algorithms, freed memory kept."""
    torch.set_num_threads(threads)
    keep_freed_memory()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # without it cuBLAS refuses to be deterministic
    torch.use_deterministic_algorithms(True)
    # Nothing here reads memory that it did not write; filling it with NaN first costs some per cent of a pass.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def place(model: nn.Module, device: str) -> nn.Module:
    """The model on ``auto`` (CUDA where there is one), ``cpu`` or ``cuda``, without a key-value cache."""
    there = torch.cuda.is_available()
    if device == "cuda" and not there:
        raise ConfigError("execution.device: cuda, but torch sees none here; use auto or cpu")
    if getattr(model.config, "use_cache", False):
        model.config.use_cache = False  # type: ignore[union-attr]
    on_gpu = device == "cuda" or (device == "auto" and there)
    return model.to("cuda" if on_gpu else "cpu")
