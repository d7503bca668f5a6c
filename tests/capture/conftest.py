"""Tiny models with random weights of five families, and token ids for them; dropout stands in their configs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM

VOCABULARY, LENGTH = 40, 12
SIZE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neox": ("clm", {"hidden_dropout": 0.2, "attention_dropout": 0.2}),
    "llama": ("clm", {"num_key_value_heads": 2, "attention_dropout": 0.2}),
    "olmo2": ("clm", {"num_key_value_heads": 2, "attention_dropout": 0.2}),
    "modernbert": (
        "mlm",
        {
            "attention_dropout": 0.2,
            "embedding_dropout": 0.2,
            "mlp_dropout": 0.2,
            "local_attention": 6,  # three positions to either side: shorter than a sequence
            "global_attn_every_n_layers": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
        },
    ),
    "eurobert": ("mlm", {"num_key_value_heads": 2, "attention_dropout": 0.2, "mask_token_id": 3}),
}
CAUSAL = [name for name, (objective, _) in FAMILIES.items() if objective == "clm"]
MASKED = [name for name, (objective, _) in FAMILIES.items() if objective == "mlm"]


@dataclass(frozen=True)
class Case:
    """A model, and three sequences of unlike content with their targets: ids (3, T), targets (3, T)."""

    family: str
    model: nn.Module
    ids: Tensor
    targets: Tensor


def make(family: str) -> Case:
    objective, fields = FAMILIES[family]
    config = AutoConfig.for_model(family, **{**SIZE, **fields})
    auto = AutoModelForCausalLM if objective == "clm" else AutoModelForMaskedLM
    torch.manual_seed(0)
    model = auto.from_config(config, attn_implementation="sdpa").float()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(4)  # initial weights are so small that every attention weight is the same
    model.eval().requires_grad_(False)
    model.config.use_cache = False
    ids = torch.randint(4, VOCABULARY, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    ids[1] = ids[1, 0]  # one token over and over
    ids[2] = torch.arange(4, 4 + LENGTH)
    return Case(family, model, ids, targets_of(ids, objective))


def targets_of(ids: Tensor, objective: str) -> Tensor:
    targets = torch.full_like(ids, -100)
    if objective == "clm":
        targets[:, :-1] = ids[:, 1:]
    else:
        targets[0, [1, 5, 6]] = ids[0, [1, 5, 6]]
        targets[1, [3]] = ids[1, [3]]
        targets[2, [0, 11]] = ids[2, [0, 11]]
    return targets


@pytest.fixture(params=FAMILIES)
def case(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


@pytest.fixture(params=CAUSAL)
def causal(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


@pytest.fixture(params=MASKED)
def masked(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


@pytest.fixture
def make_case() -> Callable[[str], Case]:
    """A case by the name of its family."""
    return make
