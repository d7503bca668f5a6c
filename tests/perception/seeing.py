"""Tiny models of images and sound, untrained, with inputs of unlike content."""

from typing import Any

import torch
from torch import Tensor, nn

from isotrace.checkpoints.initialise import initial_model

IMAGE = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "image_size": 16,
    "patch_size": 4,
}
SOUND = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "conv_dim": [8, 8],
    "conv_stride": [5, 8],
    "conv_kernel": [10, 8],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 8,
    "num_conv_pos_embedding_groups": 2,
}
WHISPER = {
    "d_model": 16,
    "encoder_layers": 3,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "num_mel_bins": 8,
    "max_source_positions": 50,
}
DINO = {name: IMAGE[name] for name in IMAGE if name != "intermediate_size"}
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "vit": ("image", IMAGE),
    "beit": ("image", IMAGE),
    "deit": ("image", IMAGE),
    "dinov2": ("image", DINO),
    "dinov2_with_registers": ("image", DINO),
    "wav2vec2": ("audio", SOUND),
    "hubert": ("audio", SOUND),
    "whisper": ("audio", WHISPER),
}
NORMED = {"vit", "deit", "dinov2", "dinov2_with_registers", "whisper"}
"""Families whose last block is followed by a norm of the whole stream."""


def architecture(family: str) -> dict[str, Any]:
    return {"model_type": family, **FAMILIES[family][1]}


def model_of(family: str, **fields: Any) -> nn.Module:
    """In eval mode, frozen; ``fields`` of its config besides."""
    model = initial_model(architecture(family) | fields, FAMILIES[family][0], None, 0)
    return model.eval().requires_grad_(False)


def inputs_of(family: str, number: int = 3) -> tuple[str, Tensor]:
    """The argument's name and values (number, ...)."""
    shapes = {"image": ("pixel_values", (3, 16, 16)), "audio": ("input_values", (1600,))}
    name, shape = ("input_features", (8, 100)) if family == "whisper" else shapes[FAMILIES[family][0]]
    return name, torch.randn(number, *shape, generator=torch.Generator().manual_seed(1))
