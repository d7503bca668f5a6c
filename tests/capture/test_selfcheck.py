"""The self-check passes on every family, and on none with a moved hook, another loss or a wrong gradient."""

from types import SimpleNamespace

import pytest
import torch
from families import BLOCKS, POST_NORM, SIZE
from test_sites import DECLARED, Odd
from transformers import AutoConfig, AutoModelForCausalLM

from isotrace.capture.selfcheck import self_check
from isotrace.capture.sites import find_sites
from isotrace.errors import DataError


def check(case, sites):
    return self_check(case.model, sites, case.ids[:2], case.targets[:2])


def number_of_hooks(model):
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def test_every_family_passes_far_below_what_is_allowed(every):
    sites = find_sites(every.model)
    found = check(every, sites)
    assert set(found) == {"inputs", "hidden_states", "losses", "gradients"}
    assert found["inputs"] == found["hidden_states"] == 0
    assert 0 <= max(found.values()) < 2e-6
    hooks = number_of_hooks(every.model)  # transformers leaves its own behind, once
    assert check(every, sites) == found
    assert number_of_hooks(every.model) == hooks
    assert not any(p.requires_grad or p.grad is not None for p in every.model.parameters())


def test_every_family_passes_in_bfloat16(every):
    model = every.model.to(torch.bfloat16)
    assert max(check(every, find_sites(model)).values()) < 2e-2


def moved(sites):
    """Every way to move one hook by one block, up or down, and all of them at once."""
    order = list(sites)
    blocks = order[1 : 1 + BLOCKS]
    for name, at in ((name, order.index(name)) for name in blocks):
        for other in {max(at - 1, 1), min(at + 1, len(order) - 1)} - {at}:
            yield sites | {name: sites[order[other]]}
    yield {"embed": sites["embed"]} | {f"block.{i}": sites[f"block.{i + 1}"] for i in range(BLOCKS - 1)}
    if "final_norm" in sites:
        yield sites | {"final_norm": sites[blocks[-1]]}
    else:
        yield {name: module for name, module in sites.items() if name != blocks[-1]}
    yield sites | {"embed": sites["block.0"]}


def test_no_family_passes_with_one_hook_moved_by_one_block(every):
    tried = 0
    for wrong in moved(find_sites(every.model)):
        with pytest.raises(DataError, match=rf"self-check of {type(every.model).__name__}: (inputs|hidden_states) at"):
            check(every, wrong)
        tried += 1
    assert tried == (7 if every.family in POST_NORM else 8)


HEADS = {
    "gemma2": {"final_logit_softcapping": 0.5, "num_key_value_heads": 2, "head_dim": 4},
    "cohere": {"logit_scale": 0.5},
    "granite": {"logits_scaling": 2.0},
}


@pytest.mark.parametrize("family", HEADS)
def test_logits_that_are_not_the_output_embeddings_are_caught(family):
    torch.manual_seed(0)
    config = AutoConfig.for_model(family, **{**SIZE, **HEADS[family]})
    model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
    ids = torch.randint(4, 40, (2, 10))
    targets = torch.cat([ids[:, 1:], torch.full((2, 1), -100)], 1)
    with pytest.raises(DataError, match="losses at the output differ by 0"):
        self_check(model, find_sites(model), ids, targets)


def test_a_gradient_that_flows_past_the_output_embedding_is_caught():
    """The loss is right, but the model's own logits depend on the last norm once more."""

    class Past(Odd):
        def forward(self, input_ids):
            hidden = self.last(self.tower(self.embed(input_ids)))
            total = hidden[..., :3].sum()
            return SimpleNamespace(logits=self.head(hidden) + (total - total.detach()) * torch.arange(40.0))

    torch.manual_seed(0)
    model = Past().eval().requires_grad_(False)
    ids = torch.randint(4, 40, (2, 10))
    with pytest.raises(DataError, match="gradients at"):
        self_check(model, find_sites(model, DECLARED), ids, ids)


def test_a_declared_model_passes_without_hidden_states():
    torch.manual_seed(0)
    model = Odd().eval().requires_grad_(False)
    ids = torch.randint(4, 40, (2, 200))
    found = self_check(model, find_sites(model, DECLARED), ids, ids)
    assert set(found) == {"inputs", "losses", "gradients"}
    assert max(found.values()) < 2e-6


def test_sequences_without_a_target_prove_nothing(make_case):
    case = make_case("bert")
    with pytest.raises(DataError, match="no target"):
        self_check(case.model, find_sites(case.model), case.ids, torch.full_like(case.ids, -100))
