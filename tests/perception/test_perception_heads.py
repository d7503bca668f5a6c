"""Heads that fill in what is hidden from them, or spell: their loss is transformers' own, summed, piece by piece."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeing import inputs_of, model_of
from transformers import ViTConfig, Wav2Vec2Config

from isotrace.errors import ConfigError, DataError
from isotrace.perception.heads import head_of
from isotrace.perception.masks import Hidden, hidden_frames, hidden_patches, none_hidden
from isotrace.perception.passes import forward, streams, traced

PATCHES = {"encoder_stride": 4}
FRAMES = {
    "mask_time_prob": 0.5,
    "mask_time_length": 4,
    "num_negatives": 5,
    "codevector_dim": 8,
    "proj_codevector_dim": 8,
    "num_codevectors_per_group": 6,
}
WITH_HEADS = {
    "ViTForMaskedImageModeling": ("vit", PATCHES),
    "DeiTForMaskedImageModeling": ("deit", PATCHES),
    "BeitForMaskedImageModeling": ("beit", {"vocab_size": 32, "use_mask_token": True}),
    "Wav2Vec2ForPreTraining": ("wav2vec2", FRAMES),
    "Wav2Vec2ForCTC": ("wav2vec2", {}),
    "HubertForCTC": ("hubert", {}),
}
PIECES = [3, 8, 20]


def made(named):
    family, fields = WITH_HEADS[named]
    model = model_of(family, architectures=[named], **fields)
    assert type(model).__name__ == named
    return model, *inputs_of(family)


def hidden_from(model, sites, name, values, sequence=PIECES) -> Hidden:
    hides = head_of(model).hides
    if not hides:
        return none_hidden(len(sequence))
    if hides == "patches":
        return hidden_patches(model.config, sequence, 16, 0)
    with torch.no_grad():
        frames = forward(model, name, values).projected_states.shape[1]
    return hidden_frames(model.config, sequence, frames, 0)


def theirs(model, name, values, hidden):
    """The sum that transformers' own loss is the mean of."""
    at = torch.from_numpy(hidden.at)
    if name == "pixel_values" and not hasattr(model, "lm_head"):
        mean = model(**{name: values}, bool_masked_pos=at).loss
        return mean * (at.sum() * 16 + 1e-5) * 3  # of 4 x 4 pixels, in 3 channels
    if name == "pixel_values":
        own = model(**{name: values}, bool_masked_pos=at).logits[at].argmax(dim=-1)
        return model(**{name: values}, bool_masked_pos=at, labels=own).loss * at.sum()
    if at.numel():
        others = torch.from_numpy(hidden.others)
        return model(**{name: values}, mask_time_indices=at, sampled_negative_indices=others).contrastive_loss
    scores = model(**{name: values}).logits.log_softmax(dim=-1)
    return -scores.max(dim=-1).values.sum()


@pytest.mark.parametrize("named", WITH_HEADS)
def test_the_loss_of_one_piece_is_transformers_own(named):
    model, name, values = made(named)
    hidden = hidden_from(model, {}, name, values).of(slice(0, 1))
    head = head_of(model)
    given = head.given(hidden)
    with torch.no_grad():
        loss = head.loss(forward(model, name, values[:1], given), values[:1], given)
        wanted = theirs(model, name, values[:1], hidden)
    torch.testing.assert_close(loss, wanted, rtol=1e-5, atol=1e-5)
    assert loss > 0


@pytest.mark.parametrize("named", WITH_HEADS)
def test_gradients_of_a_piece_do_not_depend_on_those_beside_it_nor_on_their_order(named):
    model, name, values = made(named)
    sites = streams(model, name, values)
    hidden = hidden_from(model, sites, name, values)
    together = traced(model, sites, name, values, hidden)
    turned = traced(model, sites, name, values.flip(0), Hidden(hidden.at[::-1].copy(), hidden.others[::-1].copy()))
    alone = traced(model, sites, name, values[1:2], hidden.of(slice(1, 2)))
    for whole, back, one in zip(together, turned, alone, strict=True):
        for site in sites:
            torch.testing.assert_close(back[site].flip(0), whole[site], rtol=1e-4, atol=1e-6)
            torch.testing.assert_close(one[site], whole[site][1:2], rtol=1e-4, atol=1e-6)
    assert all(together[1][site].abs().max() > 0 for site in sites)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=5, unique=True), st.integers(0, 9))
def test_what_is_hidden_is_drawn_by_seed_and_piece_alone(pieces, seed):
    config = Wav2Vec2Config(mask_time_prob=0.4, mask_time_length=5, num_negatives=7)
    frames = hidden_frames(config, pieces, 40, seed)
    patches = hidden_patches(ViTConfig(), pieces, 16, seed)
    assert (patches.at.sum(axis=1) == 10).all()  # 0.6 of 16
    for i, piece in enumerate(pieces):
        (alone,) = hidden_frames(config, [piece], 40, seed).at
        assert np.array_equal(alone, frames.at[i])
        assert np.array_equal(hidden_patches(ViTConfig(), [piece], 16, seed).at[0], patches.at[i])
        where = np.flatnonzero(frames.at[i])
        assert 5 <= where.size <= 15  # three spans of five, that may overlap
        others = frames.others[i, where]
        assert np.isin(others, where).all()
        assert (others != where[:, None]).all()


def test_a_clip_shorter_than_what_is_hidden_in_a_row_is_refused():
    with pytest.raises(DataError, match=r"clips of 10 frames, and the model hides 10 in a row; raise corpora"):
        hidden_frames(Wav2Vec2Config(), [0], 10, 0)


def test_a_class_that_transformers_lacks_is_named():
    with pytest.raises(ConfigError, match="transformers has no class ViTForNothing"):
        model_of("vit", architectures=["ViTForNothing"])
