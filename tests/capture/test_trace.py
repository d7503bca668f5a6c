"""Activations and gradients of the summed loss, against independent computations with autograd and plain hooks."""

import pytest
import torch
from torch.nn.functional import cross_entropy

from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace
from isotrace.errors import DataError

CLOSE = 1e-5


def run(case, ids=None, targets=None):
    ids = case.ids if ids is None else ids
    return trace(case.model, find_sites(case.model), ids, case.targets if targets is None else targets)


def assert_close(a, b):
    """Within 1e-5 of the largest entry."""
    assert (a - b).abs().max() <= CLOSE * b.abs().max()


def test_gradients_are_those_of_the_summed_loss(case):
    """Each site's output is replaced by a leaf, one site at a time, and autograd is asked about that leaf."""
    found = run(case)
    for name, module in find_sites(case.model).items():
        leaf = found.activations[name].clone().requires_grad_()
        handle = module.register_forward_hook(lambda _m, _i, output, leaf=leaf: like(output, leaf))
        logits = case.model(input_ids=case.ids).logits
        handle.remove()
        loss = cross_entropy(logits.flatten(0, 1), case.targets.flatten(), ignore_index=-100, reduction="sum")
        loss.backward()
        assert_close(found.gradients[name], leaf.grad)
        assert leaf.grad.abs().max() > 0


def like(output, leaf):
    """The leaf in the place of a block's output, which is a tensor or a tuple by family."""
    return leaf if isinstance(output, torch.Tensor) else (leaf, *output[1:])


def test_losses_are_per_position_in_nats_and_missing_without_a_target(case):
    found = run(case)
    logits = case.model(input_ids=case.ids).logits
    log = logits.log_softmax(-1)
    none = case.targets == -100
    assert torch.equal(torch.isnan(found.losses), none)
    expected = -log.gather(-1, case.targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    torch.testing.assert_close(found.losses[~none], expected[~none])


@pytest.mark.parametrize("batch", [1, 2])
def test_no_gradient_depends_on_the_batch(case, batch):
    """A mean loss would halve when the batch doubles, a sum does not."""
    whole = run(case)
    parts = [run(case, case.ids[i : i + batch], case.targets[i : i + batch]) for i in range(0, 3, batch)]
    for name in whole.gradients:
        assert_close(torch.cat([part.gradients[name] for part in parts]), whole.gradients[name])
        assert_close(torch.cat([part.activations[name] for part in parts]), whole.activations[name])


def test_no_gradient_depends_on_the_order(case):
    order = torch.tensor([2, 0, 1])
    whole, shuffled = run(case), run(case, case.ids[order], case.targets[order])
    twice = run(case, case.ids.repeat(2, 1)[:4], case.targets.repeat(2, 1)[:4])
    for name in whole.gradients:
        assert_close(shuffled.gradients[name], whole.gradients[name][order])
        assert_close(twice.gradients[name][3], whole.gradients[name][0])


def test_two_runs_are_equal_to_the_bit(case):
    """Dropout stands in every config: a model left in train mode fails here."""
    first, second = run(case), run(case)
    for name in first.gradients:
        assert torch.equal(first.activations[name], second.activations[name])
        assert torch.equal(first.gradients[name], second.gradients[name])


def test_a_later_token_leaves_earlier_positions_alone(causal):
    ids = causal.ids.clone()
    ids[:, 7] = (ids[:, 7] - 3) % 36 + 4
    before, after = run(causal), run(causal, ids)
    for name in before.activations:
        assert_close(after.activations[name][:, :7], before.activations[name][:, :7])
    changed = (after.activations["block.2"] - before.activations["block.2"]).abs().amax(-1)
    assert (changed[:, 7:].amax(1) > 1e-3).all()


def test_an_encoder_reads_both_ways(masked):
    ids = masked.ids.clone()
    ids[:, 7] = (ids[:, 7] - 3) % 36 + 4
    before, after = run(masked), run(masked, ids)
    changed = (after.activations["block.2"] - before.activations["block.2"]).abs().amax(-1)
    assert (changed[:, 6] > 1e-6).all()


def test_the_last_position_of_a_decoder_has_no_target_and_no_gradient(causal):
    found = run(causal)
    assert torch.isnan(found.losses[:, -1]).all()
    for name in ("block.2", "final_norm"):
        assert (found.gradients[name][:, -1] == 0).all()
        assert (found.gradients[name][:, :-1].abs().amax(-1) > 0).all()


def test_the_last_blocks_gradient_is_nonzero_exactly_at_masked_positions(masked):
    found = run(masked)
    for name in {"block.2", "final_norm"} & found.gradients.keys():
        assert torch.equal(found.gradients[name].abs().amax(-1) > 0, masked.targets != -100)
    # Below, attention carries the loss to positions that nothing is predicted at.
    assert ((found.gradients["embed"].abs().amax(-1) > 0) & (masked.targets == -100)).any()


def test_hooks_and_parameters_are_left_as_they_were(case):
    run(case)
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in find_sites(case.model).values())
    assert not any(p.requires_grad or p.grad is not None for p in case.model.parameters())


def test_values_that_are_not_finite_are_refused_with_the_site(case):
    case.model.get_input_embeddings().weight.data[case.ids[0, 3]] = torch.nan
    with pytest.raises(DataError, match="activations at embed are not finite"):
        run(case)
