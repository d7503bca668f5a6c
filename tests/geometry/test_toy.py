"""The toy block against what theory says of Gaussian inputs and of uniform attention."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.geometry.cosine import mean_cosine
from isotrace.geometry.toy import COMPONENTS, block, cosines, expected, inputs, toy_table

SPEC = {
    "width": 64,
    "heads": 4,
    "tokens": 16,
    "sequences": 8,
    "input_cosines": [0.0, 0.5],
    "qk_scales": [0.0, 1.0, 8.0],
    "seeds": 3,
    "seed": 0,
    "confidence": 0.95,
}


def wide(cosine, *, tokens=8, sequences=40, width=1024, seed=0):
    rng = np.random.default_rng(seed)
    return inputs(cosine, sequences=sequences, tokens=tokens, width=width, rng=rng)


@pytest.mark.parametrize("cosine", [0.0, 0.2, 0.9])
def test_inputs_have_the_cosine_asked_for(cosine) -> None:
    x = wide(cosine)
    assert np.square(x).sum(axis=2).mean() == pytest.approx(1024, rel=0.01)
    for value in cosines(x).values():
        assert value == pytest.approx(cosine, abs=0.01)


def test_uniform_attention_gives_every_token_of_a_sequence_one_output() -> None:
    """And divides the noise between sequences by the number of tokens."""
    x = wide(0.2)
    found = cosines(block(x, heads=4, qk_scale=0.0, rng=np.random.default_rng(1))["attention"])
    assert found["within"] == pytest.approx(1, abs=1e-12)
    assert found["across"] == pytest.approx(0.2 / (0.2 + 0.8 / 8), abs=0.02)
    assert expected("attention", "across", cosine=0.2, qk_scale=0.0, tokens=8) == pytest.approx(2 / 3)


def test_queries_and_keys_of_any_scale_keep_each_output_a_mean_of_values() -> None:
    """With one token a sequence the output is its value, whatever the scale; values are a random map of the input."""
    x = wide(0.5, tokens=1, sequences=30, width=512)
    outputs = [block(x, heads=4, qk_scale=s, rng=np.random.default_rng(1))["attention"] for s in (0.0, 50.0)]
    np.testing.assert_allclose(outputs[0], outputs[1])
    assert mean_cosine(outputs[0][:, 0]) == pytest.approx(0.5, abs=0.1)


def test_cosines_are_means_over_pairs() -> None:
    x = np.random.default_rng(0).normal(size=(3, 4, 5)) + 0.4
    unit = (x / np.linalg.norm(x, axis=2, keepdims=True)).reshape(12, 5)
    sequence = np.repeat(np.arange(3), 4)
    products, same = unit @ unit.T, sequence[:, None] == sequence[None, :]
    found = cosines(x)
    assert found["within"] == pytest.approx(products[same & ~np.eye(12, dtype=bool)].mean())
    assert found["across"] == pytest.approx(products[~same].mean())


@settings(max_examples=20)
@given(scale=st.floats(0.01, 100), seed=st.integers(0, 2**32 - 1))
def test_cosines_do_not_depend_on_lengths(scale, seed) -> None:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3, 4, 6)) + 1
    stretched = x * scale * rng.uniform(0.5, 2, size=(3, 4, 1))
    assert cosines(stretched) == pytest.approx(cosines(x))


def test_the_table_has_a_row_for_every_cell_and_says_where_there_is_no_formula() -> None:
    table = toy_table(SPEC)
    assert len(table) == 2 * 3 * len(COMPONENTS) * 2
    assert (table["reason"] == "").equals(table["expected"].notna())
    assert (table["lo"] <= table["cosine"]).all()
    assert (table["hi"] >= table["cosine"]).all()
    assert toy_table(SPEC).equals(table)


def test_attention_raises_the_cosine_and_the_residual_dilutes_it() -> None:
    """Inputs without any common direction: mixing tokens alone makes outputs of one sequence alike."""
    table = toy_table(SPEC).query("input_cosine == 0 and qk_scale == 1 and pairs == 'within'").set_index("component")
    assert table["lo"]["attention"] > table["hi"]["residual"] > table["lo"]["residual"] > table["hi"]["input"]


def test_another_seed_is_another_draw() -> None:
    assert not toy_table({**SPEC, "seed": 1})["cosine"].equals(toy_table(SPEC)["cosine"])
