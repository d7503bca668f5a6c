"""Energy of patches and frames with known answers, and the buckets that quantiles of it make."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.errors import DataError
from isotrace.perception.energy import frame_energy, mel_energy, patch_energy, quantile_buckets
from isotrace.perception.tokens import seen


def test_a_patch_has_the_variance_that_it_was_given() -> None:
    pixels = np.zeros((1, 3, 9, 8))  # a row of pixels is left over
    pixels[0, :, :4, 4:8] = np.tile([[1.0, -1.0]], (3, 4, 2))  # variance 1 in each channel
    pixels[0, 0, 4:8, :4] = 7.0  # bright, but flat
    np.testing.assert_allclose(patch_energy(pixels, (4, 4)), [[0, 1, 0, 0]])


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1))
def test_brightness_and_order_within_a_patch_play_no_part(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pixels = rng.standard_normal((2, 3, 4, 4))
    changed = pixels + rng.standard_normal((2, 3, 1, 1))
    np.testing.assert_allclose(patch_energy(changed, (4, 4)), patch_energy(pixels, (4, 4)))
    np.testing.assert_allclose(patch_energy(pixels[:, :, ::-1, ::-1], (4, 4)), patch_energy(pixels, (4, 4)))


def test_frames_share_a_clip_between_them() -> None:
    samples = np.array([[2.0, 2.0, 0.0, 0.0, 1.0, 3.0]])
    np.testing.assert_allclose(frame_energy(samples, 3), [[4, 0, 5]])
    np.testing.assert_allclose(frame_energy(samples, 4).shape, (1, 4))
    np.testing.assert_allclose(mel_energy(np.stack([samples[0], -samples[0] + 2])[None], 3), [[1, 1, 1]])


def test_equal_energies_share_a_bucket_and_quantiles_are_even() -> None:
    assert np.bincount(quantile_buckets(np.arange(40.0), 4)).tolist() == [10, 10, 10, 10]
    tied = quantile_buckets(np.array([0.0, 0, 0, 0, 1, 2]), 2)
    assert tied.tolist() == [1] * 6 or len(set(tied[:4])) == 1


def test_positions_before_the_patches_are_counted_and_frames_of_silence_left_out() -> None:
    pixels, mask = np.zeros((2, 3, 8, 8), np.float32), np.ones((2, 8), np.bool_)
    tokens = seen("pixel_values", pixels, mask, positions=6, patch=4, where="here")
    assert (tokens.offset, tokens.energy.shape, bool(tokens.real.all())) == (2, (2, 4), True)
    heard = seen("input_features", np.zeros((1, 5, 8)), np.arange(8)[None] < 5, positions=4, patch=None, where="here")
    assert heard.real.tolist() == [[True, True, False, False]]  # the third frame is half beyond the clip


@pytest.mark.parametrize(("positions", "patch", "said"), [(3, 4, "not patches one by one"), (6, None, "no patch_size")])
def test_a_stream_of_something_else_is_refused(positions: int, patch: int | None, said: str) -> None:
    pixels = np.zeros((1, 3, 8, 8), np.float32)
    with pytest.raises(DataError, match=said):
        seen("pixel_values", pixels, np.ones((1, 8), np.bool_), positions=positions, patch=patch, where="here")
