"""Weight gradients by bucket against autograd with the weight detached elsewhere, and their float32 sums."""

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy

from isotrace.capture.inputs import forward_arguments
from isotrace.capture.maps import find_maps
from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.capture.weights import BATCHES, WeightSums
from isotrace.errors import DataError
from isotrace.geometry.moments import moments

FAMILIES = ("gpt_neox", "llama", "olmo2", "gpt2", "opt", "modernbert", "bert", "distilbert", "t5")
BUCKETS = ("b0", "b1", "b2")
CLOSE = 1e-5


def assert_close(a, b):
    """Within 1e-5 of the largest entry."""
    assert np.abs(a - b).max() <= CLOSE * np.abs(b).max()


def inputs_of(case, padded):
    """Ids, targets and mask (b, T), and a bucket for every position: -1 at padding and for every fourth."""
    if padded:
        ids, targets, mask = case.padded_ids, case.padded_targets, case.attention_mask
    else:
        ids, targets, mask = case.ids, case.targets, None
    bucket = np.random.default_rng(0).integers(-1, 3, ids.shape)
    return ids, targets, mask, bucket if mask is None else np.where(mask.numpy() == 1, bucket, -1)


def summed(case, maps, ids, targets, mask, bucket, *, batch=3):
    sums = WeightSums(maps.reads, BUCKETS)
    sites = find_sites(case.model)
    for start in range(0, len(ids), batch):
        part = slice(start, start + batch)
        found = trace(
            case.model, sites, ids[part], targets[part], None if mask is None else mask[part], maps=maps.modules
        )
        at = np.nonzero(bucket[part] >= 0)
        sums.add(found.map_inputs, found.map_gradients, at, bucket[part][at])
    return sums


def maps_of(case):
    return find_maps(case.model, find_sites(case.model), ["block.0", "block.2"])


def autograd(case, maps, ids, targets, mask, inside):
    """Gradients of the maps' weights (d_out, d_in) with the weight detached at positions outside; the same loss."""
    weights = {name: module.weight.requires_grad_() for name, module in maps.modules.items()}

    def mixed(module, given, output):
        here = inside.view(*output.shape[:-1], 1)
        frozen = output.detach() - plain(module, given[0]).detach() + plain(module, given[0], module.weight.detach())
        return torch.where(here, output, frozen)

    handles = [module.register_forward_hook(mixed) for module in maps.modules.values()]
    logits = case.model(**forward_arguments(case.model, ids, targets, mask)).logits
    for handle in handles:
        handle.remove()
    loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
    gradients = torch.autograd.grad(loss, list(weights.values()))
    case.model.requires_grad_(False)
    turned = [not isinstance(module, torch.nn.Linear) for module in maps.modules.values()]  # Conv1D holds (d_in, d_out)
    return {name: (g.T if t else g).double().numpy() for name, g, t in zip(weights, gradients, turned, strict=True)}


def plain(module, x, weight=None):
    """The map's product without its bias."""
    weight = module.weight if weight is None else weight
    return x @ (weight.T if isinstance(module, torch.nn.Linear) else weight)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_equals_autograd_with_the_weight_detached_outside_the_bucket(family, padded, make_case):
    case = make_case(family)
    maps, given = maps_of(case), inputs_of(case, padded)
    sums = summed(case, maps, *given)
    reached = set()
    for i, bucket in enumerate(BUCKETS):
        expected = autograd(case, maps, *given[:3], torch.from_numpy(given[3] == i))
        for name, gradient in expected.items():
            assert_close(sums.matrix(bucket, name), gradient)
            reached |= {name} if gradient.any() else set()
    assert reached == set(maps.modules)


@pytest.mark.parametrize("family", ["gpt2", "olmo2", "bert", "t5"])
def test_buckets_add_up_to_the_whole_gradient_whatever_the_order(family, make_case):
    case = make_case(family)
    maps = maps_of(case)
    ids, targets, mask, bucket = inputs_of(case, True)
    bucket = np.where(mask.numpy() == 1, np.abs(bucket), -1)  # every attended position is in a bucket
    whole = autograd(case, maps, ids, targets, mask, torch.ones_like(ids, dtype=torch.bool))
    order = [2, 0, 1]
    shuffled = summed(case, maps, ids[order], targets[order], mask[order], bucket[order], batch=1)
    together = summed(case, maps, ids, targets, mask, bucket)
    for name, gradient in whole.items():
        assert_close(sum(together.matrix(bucket, name) for bucket in BUCKETS), gradient)
        for one in BUCKETS:
            assert_close(shuffled.matrix(one, name), together.matrix(one, name))
            assert shuffled.tokens(one, name) == together.tokens(one, name)


def made(batches):
    """Sums of one map over batches of (x (m, d_in), delta (m, d_out)), all rows in bucket b1."""
    sums = WeightSums({"a": "a"}, BUCKETS)
    for x, delta in batches:
        at = (np.zeros(len(x), int), np.arange(len(x)))
        sums.add({"a": x[None]}, {"a": delta[None]}, at, np.ones(len(x), int))
    return sums


def test_no_small_batch_is_lost_beside_a_large_sum():
    """1 + 2000 times 3e-8 stays 1 in float32."""
    one, tiny = torch.ones(1, 2), torch.full((1, 2), 3e-8)
    batches = [(one, one), *[(one, tiny)] * 2000]
    naive = torch.zeros(2, 2)
    for x, delta in batches:
        naive += delta.T @ x
    assert (naive == 1).all()
    np.testing.assert_allclose(made(batches).matrix("b1", "a"), 1 + 2000 * 3e-8, rtol=1e-6)


def test_sums_are_those_of_float64_to_a_millionth():
    torch.manual_seed(0)
    batches = [(torch.randn(4, 6), torch.randn(4, 5)) for _ in range(40 * BATCHES + 3)]
    exact = sum((delta.T @ x).double().numpy() for x, delta in batches)
    found = made(batches).matrix("b1", "a")
    assert np.abs(found - exact).max() <= 1e-6 * np.abs(exact).max()


def test_moments_are_those_of_the_rows_and_other_buckets_stay_empty():
    torch.manual_seed(0)
    x, delta = torch.randn(30, 6), torch.randn(30, 5)
    delta[::3] = 0
    sums = made([(x, delta)])
    g = (delta.T @ x).double().numpy()
    found = sums.moments("b1", "a")
    assert (found.n, found.d) == (5, 6)
    np.testing.assert_allclose(found.second_moment, g.T @ g / 5, atol=1e-5 * np.abs(g.T @ g).max())
    np.testing.assert_allclose(found.scatter, moments(g).scatter, rtol=1e-4, atol=1e-4)
    assert sums.tokens("b1", "a") == 20
    assert sums.tokens("b0", "a") == 0
    assert (sums.matrix("b0", "a") == 0).all()


def test_a_map_without_a_row_says_so():
    with pytest.raises(DataError, match="no gradient of a was added"):
        made([]).matrix("b1", "a")
