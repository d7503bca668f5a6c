"""Attention of models of images and sound against their own eager weights and their own projections."""

from typing import Any

import numpy as np
import pytest
import torch
from seeing import inputs_of, model_of
from torch import Tensor, nn

from attention_oracle import naive
from isotrace.capture.attention import Unavailable, grouped_sums
from isotrace.geometry.head_sums import HeadSums
from isotrace.perception.passes import forward

BUCKETS = ("b0", "b1")
FAMILIES = ["vit", "beit", "deit", "dinov2_with_registers", "wav2vec2", "hubert", "whisper"]


def sharp(family: str) -> nn.Module:
    """With weights that tell positions apart."""
    model = model_of(family)
    for parameter in model.parameters():
        parameter.data.mul_(4 if parameter.ndim == 2 else 1)
    return model


def encoder(model: Any) -> Any:
    return model.encoder if hasattr(model, "encoder") else model.base_model


def own_weights(model: Any, name: str, values: Tensor) -> list[Tensor]:
    """(b, H, T, T) a layer, as the family returns them."""
    model.set_attn_implementation("eager")
    found = encoder(model)(**{name: values}, output_attentions=True).attentions
    model.set_attn_implementation("sdpa")
    return list(found)


def buckets(pieces: int, positions: int) -> Any:
    bucket = np.random.default_rng(0).integers(0, 2, (pieces, positions))
    bucket[:, 0] = -1
    return bucket


def sums_of(model: nn.Module, name: str, values: Tensor, bucket: Any) -> list[HeadSums]:
    group = np.arange(len(values))
    run = {"run": lambda part: forward(model, name, torch.from_numpy(part))}
    found = grouped_sums(model, values.numpy(), bucket, BUCKETS, group=group, batch_size=2, **run)
    return [layer.total for layer in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_sharpness_is_that_of_the_familys_own_weights(family: str) -> None:
    model, (name, values) = sharp(family), inputs_of(family)
    weights = own_weights(model, name, values)
    bucket = buckets(len(values), weights[0].shape[2])
    found = sums_of(model, name, values, bucket)
    assert len(found) == len(weights) == 3
    for one, own in zip(found, weights, strict=True):
        for measure, value in naive(own.double().numpy(), bucket).items():
            np.testing.assert_allclose(getattr(one, measure), value, rtol=1e-5, atol=1e-5, err_msg=measure)


def split(states: Tensor) -> Tensor:
    """(b, T, H * d_h) -> (b, H, T, d_h), two heads."""
    return states.unflatten(-1, (2, -1)).transpose(1, 2)


@pytest.mark.parametrize("family", ["vit", "whisper"])
def test_queries_and_keys_are_those_of_the_models_own_projections(family: str) -> None:
    model, (name, values) = sharp(family), inputs_of(family)
    hidden = encoder(model)(**{name: values}, output_hidden_states=True).hidden_states
    bucket = buckets(len(values), hidden[0].shape[1])
    found = sums_of(model, name, values, bucket)
    layers = [m for m in model.modules() if type(m).__name__ in ("ViTLayer", "WhisperEncoderLayer")]
    for one, layer, states in zip(found, layers, hidden[:-1], strict=True):
        norm = layer.layernorm_before if family == "vit" else layer.self_attn_layer_norm
        inner = layer.attention if family == "vit" else layer.self_attn
        read = norm(states)
        query, key = (split(map_(read)).double().numpy() for map_ in (inner.q_proj, inner.k_proj))
        if family == "whisper":  # scales its queries, of eight numbers a head, before it hands them on
            query = query * 8**-0.5
        for b in range(2):
            for mean, own in (("q_sum", query), ("k_sum", key)):
                whole = own.transpose(0, 2, 1, 3)[bucket == b].sum(axis=0)
                np.testing.assert_allclose(getattr(one, mean)[b], whole, rtol=1e-4, atol=1e-4)


def test_a_family_without_the_seam_says_so() -> None:
    from transformers import AutoConfig, AutoModel

    size = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    config = AutoConfig.for_model("data2vec-vision", image_size=16, patch_size=4, **size)
    model = AutoModel.from_config(config).eval().requires_grad_(False)
    _, values = inputs_of("vit")
    with pytest.raises(Unavailable, match="its layers offer no seam to read it"):
        sums_of(model, "pixel_values", values, buckets(3, 17))


def test_a_layer_over_other_positions_is_named() -> None:
    model, (name, values) = model_of("vit"), inputs_of("vit")
    with pytest.raises(Unavailable, match="a layer attends over 17 positions, not 16"):
        sums_of(model, name, values, buckets(3, 16))
