"""Every family, padded and not: what is captured is the model's own, and no way of feeding it changes a number."""

import pytest
import torch
from families import LENGTHS, MASKED, to_the_left
from torch.nn.functional import cross_entropy

from isotrace.capture.inputs import forward_arguments
from isotrace.capture.sites import find_sites
from isotrace.capture.trace import trace

CLOSE = 1e-5


def run(case, batch=None, **options):
    return trace(case.model, find_sites(case.model), *(case.padded if batch is None else batch), **options)


def tensors(found):
    """Every captured tensor by (quantity, site)."""
    pairs = (("activation", found.activations), ("gradient", found.gradients))
    return {(what, site): tensor for what, by_site in pairs for site, tensor in by_site.items()}


def rows(batch, *which):
    return tuple(tensor[list(which)] for tensor in batch)


def assert_same(found, expected, real):
    """Within 1e-5 of the largest entry, where the mask says that something stands."""
    for name, tensor in tensors(expected).items():
        largest = tensor[real].abs().max()
        assert largest > 0, name
        assert (tensors(found)[name][real] - tensor[real]).abs().max() <= CLOSE * largest, name
    torch.testing.assert_close(found.losses[real], expected.losses[real], rtol=CLOSE, atol=CLOSE, equal_nan=True)


def test_a_block_is_what_transformers_calls_its_hidden_state(every):
    """The last hidden state of a family with a final norm is that norm's, never the last block's."""
    found = run(every)
    given = every.model(**forward_arguments(every.model, *every.padded), output_hidden_states=True)
    hidden = given.encoder_hidden_states if every.family == "t5" else given.hidden_states
    assert len(hidden) == 4
    last = "final_norm" if "final_norm" in found.activations else "block.2"
    for site, state in zip(("block.0", "block.1", last), hidden[1:], strict=True):
        assert torch.equal(found.activations[site], state)
    assert not torch.equal(found.activations["block.0"], found.activations["block.1"])


def test_gradients_are_those_of_the_summed_loss_with_padding(every):
    """Each site's output is replaced by a leaf, one site at a time, and autograd is asked about that leaf."""
    found, (ids, targets, mask) = run(every), every.padded
    for name, module in find_sites(every.model).items():
        leaf = found.activations[name].clone().requires_grad_()
        handle = module.register_forward_hook(lambda _m, _i, output, leaf=leaf: like(output, leaf))
        logits = every.model(**forward_arguments(every.model, ids, targets, mask)).logits
        handle.remove()
        loss = cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100, reduction="sum")
        loss.backward()
        assert leaf.grad.abs().max() > 0
        assert (found.gradients[name] - leaf.grad).abs().max() <= CLOSE * leaf.grad.abs().max()
        assert (found.gradients[name][mask == 0] == 0).all()
    assert float(found.losses.nansum()) == pytest.approx(loss.item(), rel=CLOSE)


def like(output, leaf):
    """The leaf in the place of a block's output, which is a tensor or a tuple by family."""
    return leaf if isinstance(output, torch.Tensor) else (leaf, *output[1:])


def test_nothing_depends_on_the_batch(every):
    """Eight sequences in batches of 8, 4, 2 and 1; a mean loss would halve when the batch doubles."""
    eight = rows(every.padded, 0, 1, 2, 0, 2, 1, 1, 0)
    whole, real = run(every, eight), eight[2].bool()
    for size in (4, 2, 1):
        parts = [run(every, tuple(t[i : i + size] for t in eight)) for i in range(0, 8, size)]
        assert_same(joined(parts), whole, real)


def joined(parts):
    """One trace of the batches of several."""
    names = parts[0].activations
    return type(parts[0])(
        {name: torch.cat([part.activations[name] for part in parts]) for name in names},
        {name: torch.cat([part.gradients[name] for part in parts]) for name in names},
        torch.cat([part.losses for part in parts]),
    )


def test_nothing_depends_on_the_order(every):
    shuffled = rows(every.padded, 2, 0, 1)
    back = torch.tensor([1, 2, 0])
    found, expected = run(every, shuffled), run(every)
    moved = type(found)(
        {name: tensor[back] for name, tensor in found.activations.items()},
        {name: tensor[back] for name, tensor in found.gradients.items()},
        found.losses[back],
    )
    assert_same(moved, expected, every.attention_mask.bool())


def test_nothing_depends_on_the_side_of_the_padding(every):
    right, left = run(every), run(every, every.padded_left)
    moved = type(right)(
        {name: to_the_left(tensor) for name, tensor in right.activations.items()},
        {name: to_the_left(tensor) for name, tensor in right.gradients.items()},
        to_the_left(right.losses),
    )
    assert_same(left, moved, every.padded_left[2].bool())


def test_nothing_depends_on_padding_at_all(every):
    padded = run(every)
    for i, n in enumerate(LENGTHS):
        alone = run(every, tuple(tensor[i : i + 1, :n] for tensor in every.padded[:2]))
        cut = type(alone)(
            {name: tensor[i : i + 1, :n] for name, tensor in padded.activations.items()},
            {name: tensor[i : i + 1, :n] for name, tensor in padded.gradients.items()},
            padded.losses[i : i + 1, :n],
        )
        assert_same(cut, alone, torch.ones((1, n), dtype=torch.bool))


@pytest.mark.parametrize("loss_bytes", [1, 4 * 40 * 5])
def test_nothing_depends_on_how_much_of_the_loss_is_held_at_once(every, loss_bytes):
    """One target at a time, five at a time, all at once."""
    assert_same(run(every, loss_bytes=loss_bytes), run(every), every.attention_mask.bool())


def test_a_later_token_leaves_earlier_positions_of_a_decoder_alone(causal):
    """Targets are kept: only what is read at position 4 changes."""
    ids, targets, mask = causal.padded
    other = ids.clone()
    other[:, 4] = (ids[:, 4] - 3) % 36 + 4
    before, after = run(causal), run(causal, (other, targets, mask))
    for name in before.activations:
        assert (after.activations[name][:, :4] - before.activations[name][:, :4]).abs().max() <= CLOSE
    for name in ("embed", "block.2"):
        assert ((after.activations[name] - before.activations[name])[:, 4].abs().amax(-1) > 1e-3).all()


@pytest.mark.parametrize("family", [*MASKED, "t5"])
def test_an_encoder_sees_a_later_token_at_earlier_positions(make_case, family):
    case = make_case(family)
    ids, targets, mask = case.padded
    other = ids.clone()
    other[:, 4] = (ids[:, 4] - 3) % 36 + 4
    before, after = run(case), run(case, (other, targets, mask))
    assert ((after.activations["block.2"] - before.activations["block.2"])[:, 3].abs().amax(-1) > 1e-6).all()


def test_two_captures_are_equal_to_the_bit_and_leave_the_model_as_it_was(every):
    """Dropout stands in every config: a model left in train mode fails here."""
    first, second = run(every), run(every)
    for name, tensor in tensors(first).items():
        assert torch.equal(tensor, tensors(second)[name])
    assert torch.equal(first.losses.nan_to_num(), second.losses.nan_to_num())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in every.model.modules())
    assert not any(p.requires_grad or p.grad is not None for p in every.model.parameters())


def test_dropout_stands_in_every_config(every):
    """A model in train mode gives other numbers each time, so that the test above can fail."""
    arguments = forward_arguments(every.model.train(), *every.padded)
    assert not torch.equal(every.model(**arguments).logits, every.model(**arguments).logits)
