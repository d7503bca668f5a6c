"""Heads that fill in what is hidden from them, or spell: their loss is transformers' own, summed, piece by piece."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from seeing import inputs_of, model_of
from transformers import BeitConfig, DeiTConfig, ViTConfig, Wav2Vec2Config

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
    "Wav2Vec2ConformerForPreTraining": ("wav2vec2", FRAMES | {"model_type": "wav2vec2-conformer"}),
    "Wav2Vec2ForCTC": ("wav2vec2", {}),
    "HubertForCTC": ("hubert", {}),
}
PIECES = [3, 8, 20, 21]
NUMBER = {"pixel_values": 16, "input_values": 39}
"""Patches or frames of a piece."""


def made(named):
    family, fields = WITH_HEADS[named]
    model = model_of(family, architectures=[named], **fields)
    assert type(model).__name__ == named
    return model, *inputs_of(family, len(PIECES))


def hidden_from(model, name) -> Hidden:
    hides, number = head_of(model).hides, NUMBER[name]
    return hides(model.config, PIECES, number, 0) if hides else none_hidden(len(PIECES), number)


def theirs(model, name, values, hidden):
    """The sum that transformers' own loss is the mean of."""
    at = torch.from_numpy(hidden.at)
    if name == "pixel_values" and not hasattr(model, "lm_head"):
        mean = model(**{name: values}, bool_masked_pos=at).loss
        return mean * (at.sum() * 16 + 1e-5) * 3  # of 4 x 4 pixels, in 3 channels
    if name == "pixel_values":
        own = model(**{name: values}, bool_masked_pos=at).logits[at].argmax(dim=-1)
        return model(**{name: values}, bool_masked_pos=at, labels=own).loss * at.sum()
    if at.any():
        return told_apart(
            model(**{name: values}, mask_time_indices=at), hidden, model.config.contrastive_logits_temperature
        )
    scores = model(**{name: values}).logits.log_softmax(dim=-1)
    return -scores.max(dim=-1).values.sum()


def told_apart(output, hidden, temperature):
    """Equation 3 of Baevski et al. 2020, frame by frame; a distractor of the frame's own code is none."""
    loss, codes = torch.zeros(()), output.projected_quantized_states[0]
    for t in np.flatnonzero(hidden.at[0]):
        others = [codes[i] for i in hidden.others[0, t] if not torch.equal(codes[i], codes[t])]
        near = torch.cosine_similarity(output.projected_states[0, t], torch.stack([codes[t], *others]), dim=-1)
        loss -= (near / temperature).log_softmax(dim=-1)[0]
    return loss


@pytest.mark.parametrize("named", WITH_HEADS)
def test_the_loss_of_one_piece_is_transformers_own(named):
    model, name, values = made(named)
    hidden = hidden_from(model, name).of(slice(0, 1))
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
    hidden = hidden_from(model, name)
    together = traced(model, sites, name, values, hidden)
    for batch in ([1], [2, 0], [3, 1, 0, 2]):
        passed = traced(model, sites, name, values[batch], Hidden(hidden.at[batch], hidden.others[batch]))
        for whole, some in zip(together, passed, strict=True):
            for site in sites:
                torch.testing.assert_close(some[site], whole[site][batch], rtol=1e-4, atol=1e-6)
    assert all(together[1][site].abs().max() > 0 for site in sites)


@settings(max_examples=30)
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


@pytest.mark.parametrize(
    ("draw", "config", "named"),
    [
        (hidden_patches, BeitConfig(), "use_mask_token is false"),
        (hidden_patches, DeiTConfig(patch_size=8), "encoder_stride is 16 and patch_size 8"),
        (hidden_frames, Wav2Vec2Config(apply_spec_augment=False), "apply_spec_augment is false"),
        (hidden_frames, Wav2Vec2Config(mask_time_prob=0.0), "mask_time_prob is 0"),
    ],
)
def test_a_model_from_which_nothing_can_be_hidden_is_refused(draw, config, named):
    with pytest.raises(DataError, match=f"the model's config: {named}"):
        draw(config, [0], 64, 0)


def test_a_class_that_transformers_lacks_or_of_another_family_is_named():
    with pytest.raises(ConfigError, match="transformers has no class ViTForNothing"):
        model_of("vit", architectures=["ViTForNothing"])
    for named in ("BeitForMaskedImageModeling", "ViTConfig"):
        with pytest.raises(ConfigError, match=f"architectures names {named}, which is no model of this type"):
            model_of("vit", architectures=[named])
