"""Sites are the modules they are named for, in order of depth; what does not exist is said."""

from itertools import pairwise

import pytest
import torch
from torch import nn

from isotrace.capture.sites import choose, find_sites
from isotrace.capture.trace import recorded
from isotrace.errors import ConfigError, DataError


def names(blocks):
    return ["embed", *(f"block.{i}" for i in range(blocks)), "final_norm"]


def test_every_family_has_its_sites_in_order_of_depth(case):
    sites = find_sites(case.model)
    assert list(sites) == names(3)
    assert sites["embed"] is case.model.get_input_embeddings()
    assert len({id(module) for module in sites.values()}) == 5
    assert len({type(sites[f"block.{i}"]) for i in range(3)}) == 1


def test_a_blocks_output_is_the_next_ones_input_and_the_norm_ends_the_stack(case):
    sites = find_sites(case.model)
    inputs = {}
    handles = [
        module.register_forward_pre_hook(lambda _m, given, name=name: inputs.update({name: given[0]}))
        for name, module in sites.items()
        if name != "embed"
    ]
    with recorded(sites) as outputs:
        hidden = case.model(input_ids=case.ids, output_hidden_states=True).hidden_states
    for handle in handles:
        handle.remove()
    assert torch.equal(inputs["block.1"], outputs["block.0"])
    assert torch.equal(inputs["block.2"], outputs["block.1"])
    assert torch.equal(inputs["final_norm"], outputs["block.2"])
    assert torch.equal(hidden[-1], outputs["final_norm"])
    assert not torch.equal(hidden[-1], outputs["block.2"])
    assert torch.equal(outputs["embed"], case.model.get_input_embeddings().weight[case.ids])


def test_all_sites_of_a_shallow_model_and_a_spread_of_a_deep_one():
    assert choose(names(8), None) == names(8)
    kept = choose(names(24), None)
    assert kept[0] == "embed"
    assert kept[1] == "block.0"
    assert kept[-2:] == ["block.23", "final_norm"]
    assert len(kept) == 8
    depth = [int(name.removeprefix("block.")) for name in kept[1:-1]]
    assert depth == sorted(depth)
    assert max(b - a for a, b in pairwise(depth)) <= 6


def test_wanted_sites_come_in_order_of_depth():
    assert choose(names(4), ["final_norm", "block.2"]) == ["block.2", "final_norm"]


def test_a_site_that_does_not_exist_is_a_config_error():
    with pytest.raises(ConfigError, match=r"capture.sites: \['block.9'\] not among \['embed'"):
        choose(names(2), ["block.1", "block.9"])


def test_a_model_without_one_list_of_blocks_is_refused():
    with pytest.raises(DataError, match="Sequential: found 0 lists of blocks"):
        find_sites(nn.Sequential(nn.Linear(2, 2)))
