"""Sites and gradients of eight families against what transformers itself gives out."""

import pytest
import torch
from seeing import FAMILIES, NORMED, inputs_of, model_of
from torch import nn
from transformers import Swinv2Config, Swinv2ForImageClassification

from isotrace.errors import DataError
from isotrace.perception.heads import head_of
from isotrace.perception.passes import streams, traced


@pytest.mark.parametrize("family", FAMILIES)
def test_sites_hold_the_hidden_states_and_their_true_gradients(family: str) -> None:
    model, (name, values) = model_of(family), inputs_of(family)
    sites = streams(model, name, values)
    blocks = [f"block.{i}" for i in range(3)]
    assert list(sites) == ["embed", *blocks, *(["final_norm"] if family in NORMED else [])]
    activations, gradients = traced(model, sites, name, values)
    states = model(**{name: values.clone().requires_grad_()}, output_hidden_states=True)
    loss = sum(nn.functional.cross_entropy(row[None], row.argmax()[None]) for row in states.logits)
    # What transformers calls the last hidden state is after the norm in some families.
    known = list(zip(["embed", *blocks[:-1]], states.hidden_states, strict=False))
    for site, state in known:
        torch.testing.assert_close(activations[site], state.detach())
    wanted = torch.autograd.grad(loss, [state for _, state in known])
    for (site, _), gradient in zip(known, wanted, strict=True):
        torch.testing.assert_close(gradients[site], gradient)
        assert gradient.abs().max() > 0


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_do_not_depend_on_the_batch(family: str) -> None:
    model, (name, values) = model_of(family), inputs_of(family)
    sites = streams(model, name, values)
    together, alone = traced(model, sites, name, values), traced(model, sites, name, values[1:2])
    for whole, one in zip(together, alone, strict=True):
        for site in sites:
            torch.testing.assert_close(whole[site][1:2], one[site], rtol=1e-4, atol=1e-6)


def test_a_model_without_a_head_has_activations_alone() -> None:
    whole, (name, values) = model_of("vit"), inputs_of("vit")
    bare = whole.base_model
    sites = streams(bare, name, values)
    activations, gradients = traced(bare, sites, name, values)
    assert head_of(bare) is None
    assert gradients == {}
    torch.testing.assert_close(activations["final_norm"], bare(**{name: values}).last_hidden_state)


def test_a_model_that_merges_patches_is_refused() -> None:
    config = Swinv2Config(image_size=16, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[1, 2], window_size=4)
    model = Swinv2ForImageClassification(config).eval().requires_grad_(False)
    with pytest.raises(DataError, match="models that merge patches between blocks have none"):
        streams(model, *inputs_of("vit"))


def test_weights_that_overflow_are_refused() -> None:
    model, (name, values) = model_of("vit"), inputs_of("vit")
    sites = streams(model, name, values)
    next(p for n, p in model.named_parameters() if n.endswith("position_embeddings")).data.fill_(float("inf"))
    with pytest.raises(DataError, match="activations at embed are not finite"):
        traced(model, sites, name, values)
