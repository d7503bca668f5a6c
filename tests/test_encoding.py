"""Stored rows against what other libraries round to, their errors, and what must come back exactly."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from isotrace.encoding import Encoding, decode, relative_error, rounded

DTYPES = ["float32", "float16", "bfloat16"]
finite = st.floats(width=32, allow_nan=False, allow_infinity=False)
matrices = hnp.arrays(np.float32, hnp.array_shapes(min_dims=2, max_dims=3, max_side=6), elements=finite)


@given(matrices)
def test_bfloat16_is_what_torch_rounds_to(rows):
    theirs = torch.from_numpy(rows).to(torch.bfloat16).to(torch.float32).numpy()
    np.testing.assert_array_equal(rounded(rows, "bfloat16").view(np.uint32), theirs.view(np.uint32))


def test_bfloat16_takes_ties_to_the_even_neighbour():
    rows = np.array([[1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 1 + 2**-8 + 2**-20]], np.float32)
    np.testing.assert_array_equal(rounded(rows, "bfloat16"), [[1, 1 + 2**-6, -1, 1 + 2**-7]])


@given(matrices)
def test_float32_comes_back_to_the_bit(rows):
    assert rounded(rows, "float32").tobytes() == rows.tobytes()


@given(matrices)
def test_float16_stays_within_half_a_unit_of_its_row(rows):
    found = rounded(rows, "float16")
    largest = np.abs(rows).max(axis=-1, keepdims=True).astype(np.float64)
    # 2^-11 of the largest entry's power of two; entries below 2^-14 of it lose up to 2^-25 of that power.
    # Below float32's smallest normal number only multiples of 2^-149 exist.
    bound = 2.0**-10 * largest + 2.0**-149
    assert np.all(np.abs(found.astype(np.float64) - rows) <= bound)


def test_float16_holds_the_largest_float32():
    rows = np.array([[np.finfo(np.float32).max, 0], [np.finfo(np.float32).min, 1]], np.float32)
    np.testing.assert_allclose(rounded(rows, "float16")[:, 0], rows[:, 0], rtol=2**-10)


@given(matrices, st.sampled_from(DTYPES))
def test_rounding_twice_is_rounding_once(rows, dtype):
    once = rounded(rows, dtype)
    if np.isfinite(once).all():
        np.testing.assert_array_equal(rounded(once, dtype), once)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("size", [1e-30, 1e-12, 6e-8, 1.0, 1e4, 3e38])
def test_rows_of_any_size_keep_their_relative_precision(dtype, size):
    rows = np.random.default_rng(0).uniform(-1, 1, (50, 64)).astype(np.float32) * np.float32(size)
    stored, scale = Encoding(dtype).encode(rows)
    found = decode(stored, scale)
    expected = np.linalg.norm(found / size - rows / size, axis=1) / np.linalg.norm(rows / size, axis=1)
    assert relative_error(rows, stored, scale) == pytest.approx(expected.max(), rel=1e-3)
    assert expected.max() < {"float16": 2**-11, "bfloat16": 2**-8}[dtype]


def test_plain_float16_would_lose_such_gradients():
    """What the scale is for: the same rows without it are zeros."""
    rows = np.full((1, 4), 1e-8, np.float32)
    assert not rows.astype(np.float16).any()
    assert rounded(rows, "float16") == pytest.approx(rows, rel=1e-3)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_rows_stay_exactly_zero_and_have_no_error(dtype):
    rows = np.array([[0, -0.0, 0], [1, 2, 3]], np.float32)
    found = rounded(rows, dtype)
    assert not found[0].any()
    stored, scale = Encoding(dtype).encode(rows)
    assert relative_error(rows, stored, scale) == 0


def test_scales_are_powers_of_two_not_below_the_largest_entry():
    rows = np.array([[1, -3], [0.25, 0.1], [5e-5, 0]], np.float32)
    stored, scale = Encoding("float16").encode(rows)
    np.testing.assert_array_equal(scale, [4, 0.5, 2.0**-14])
    assert stored.dtype == np.float16
    assert np.abs(stored).max() <= 1
    assert np.all(np.log2(scale) % 1 == 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_not_finite_stays_visible(dtype):
    with np.errstate(invalid="ignore"):
        found = rounded(np.array([[np.nan, 1], [np.inf, 1], [-np.inf, 1]], np.float32), dtype)
    assert not np.isfinite(found[:, 0]).any()
