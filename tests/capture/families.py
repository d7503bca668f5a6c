"""Tiny models with random weights of fifteen families; every dropout that a family has stands in its config."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForMaskedLM, AutoModelForSeq2SeqLM

VOCABULARY, LENGTH, BLOCKS = 40, 12, 3
LENGTHS = (12, 9, 5)
EOS = 2
SIZE = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": BLOCKS,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 32,
    "pad_token_id": EOS,  # where pad and eos are one id, only the mask says which is which
    "bos_token_id": 1,
    "eos_token_id": EOS,
}
ATTENTION = {"attention_dropout": 0.2}
GROUPED = {"num_key_value_heads": 2, **ATTENTION}
BERT = {"hidden_dropout_prob": 0.2, "attention_probs_dropout_prob": 0.2, "classifier_dropout": 0.2}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt_neox": ("clm", {"hidden_dropout": 0.2, "classifier_dropout": 0.2, **ATTENTION}),
    "llama": ("clm", GROUPED),
    "olmo": ("clm", GROUPED),
    "olmo2": ("clm", GROUPED),
    "gpt2": ("clm", {"resid_pdrop": 0.2, "embd_pdrop": 0.2, "attn_pdrop": 0.2, "summary_first_dropout": 0.2}),
    "opt": ("clm", {"dropout": 0.2, "layerdrop": 0.2, "ffn_dim": 24, "word_embed_proj_dim": 16, **ATTENTION}),
    "qwen3": ("clm", {"head_dim": 4, **GROUPED}),
    "phi": ("clm", {"qk_layernorm": True, "resid_pdrop": 0.2, "embd_pdrop": 0.2, **GROUPED}),
    "eurobert": ("mlm", {"mask_token_id": 3, **GROUPED}),
    "modernbert": (
        "mlm",
        {
            "embedding_dropout": 0.2,
            "mlp_dropout": 0.2,
            "classifier_dropout": 0.2,
            "local_attention": 6,  # three positions to either side: shorter than a sequence
            "global_attn_every_n_layers": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
            **ATTENTION,
        },
    ),
    "bert": ("mlm", BERT),
    "roberta": ("mlm", BERT),
    "camembert": ("mlm", BERT),
    "distilbert": (
        "mlm",
        {"dropout": 0.2, "qa_dropout": 0.2, "seq_classif_dropout": 0.2, "hidden_dim": 24, **ATTENTION},
    ),
    "t5": (
        "mlm",
        {
            "d_kv": 4,
            "d_ff": 24,
            "num_decoder_layers": BLOCKS,
            "dropout_rate": 0.2,
            "classifier_dropout": 0.2,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 8,
            "decoder_start_token_id": 0,
        },
    ),
}
STACKS = [name for name in FAMILIES if name != "t5"]
CAUSAL = [name for name in STACKS if FAMILIES[name][0] == "clm"]
MASKED = [name for name in STACKS if FAMILIES[name][0] == "mlm"]
POST_NORM = ("bert", "roberta", "camembert", "distilbert")


@dataclass(frozen=True)
class Case:
    """A model, and three sequences of unlike content with their targets: ids (3, T), targets (3, T).

    Padded: the same sequences cut to LENGTHS and filled up at one side; attention_mask (3, T) is 1 for what is real.
    """

    family: str
    model: nn.Module
    ids: Tensor
    targets: Tensor
    padded_ids: Tensor
    padded_targets: Tensor
    attention_mask: Tensor

    @property
    def padded(self) -> tuple[Tensor, Tensor, Tensor]:
        """Ids, targets and mask, padded at the right."""
        return self.padded_ids, self.padded_targets, self.attention_mask

    @property
    def padded_left(self) -> tuple[Tensor, Tensor, Tensor]:
        """The same sequences, padded at the left."""
        return to_the_left(self.padded_ids), to_the_left(self.padded_targets), to_the_left(self.attention_mask)


def to_the_left(rows: Tensor) -> Tensor:
    """Rows (3, T, ...) of sequences padded at the right, as rows of sequences padded at the left."""
    return torch.stack([row.roll(LENGTH - n, 0) for row, n in zip(rows, LENGTHS, strict=True)])


def model_of(family: str, **changes: Any) -> nn.Module:
    """A model in eval mode, frozen, whose attention weights are not all alike."""
    objective, fields = FAMILIES[family]
    config = AutoConfig.for_model(family, **{**SIZE, **fields, **changes})
    auto = AutoModelForCausalLM if objective == "clm" else AutoModelForMaskedLM
    torch.manual_seed(0)
    model = (AutoModelForSeq2SeqLM if family == "t5" else auto).from_config(config, attn_implementation="sdpa").float()
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.mul_(1 if family == "t5" else 4)  # else every attention weight is the same
    embedding = model.get_input_embeddings().weight.data
    embedding[EOS] = embedding[3].flip(0)  # zero at first, as the padding's; a trained eos is a word like any other
    model.eval().requires_grad_(False)
    model.config.use_cache = False
    return model


def make(family: str) -> Case:
    """A fresh model of a family and its sequences."""
    objective = FAMILIES[family][0]
    ids = torch.randint(4, VOCABULARY, (3, LENGTH), generator=torch.Generator().manual_seed(1))
    ids[1] = ids[1, 0]  # one token over and over
    ids[2] = torch.arange(4, 4 + LENGTH)
    mask = (torch.arange(LENGTH)[None] < torch.tensor(LENGTHS)[:, None]).long()
    padded = ids.masked_fill(mask == 0, EOS)
    padded[:, 3] = EOS  # a real one
    targets = targets_of(padded, objective).masked_fill(mask == 0, -100)
    if objective == "clm":
        targets[torch.arange(3), torch.tensor(LENGTHS) - 1] = -100
    return Case(family, model_of(family), ids, targets_of(ids, objective), padded, targets, mask)


def targets_of(ids: Tensor, objective: str) -> Tensor:
    """The next id, or the ids at a few positions."""
    targets = torch.full_like(ids, -100)
    if objective == "clm":
        targets[:, :-1] = ids[:, 1:]
    else:
        targets[0, [1, 5, 6]] = ids[0, [1, 5, 6]]
        targets[1, [3]] = ids[1, [3]]
        targets[2, [0, 11]] = ids[2, [0, 11]]
    return targets
