"""The jackknife against cases with a known answer."""

import numpy as np
import pytest

from isotrace.geometry.jackknife import corrected, group_labels, jackknife


def test_groups_are_whole_sequences_of_equal_number() -> None:
    sequence = np.repeat([3, 50, 7, 9, 12, 80], [4, 1, 2, 5, 1, 3])
    label = group_labels(sequence, 3)
    assert sorted({(int(s), int(g)) for s, g in zip(sequence, label, strict=True)}) == [
        (3, 0), (7, 0), (9, 1), (12, 1), (50, 2), (80, 2)
    ]  # fmt: skip
    assert group_labels(sequence, 20).max() == 5


def test_standard_error_of_a_mean_and_bias_of_a_variance() -> None:
    x = np.random.default_rng(0).standard_normal(40)
    leave = [np.delete(x, i) for i in range(40)]
    mean = jackknife(np.array([x.mean(), *(r.mean() for r in leave)]), 0.95)
    assert mean.margin == pytest.approx(2.0226909 * x.std(ddof=1) / np.sqrt(40), rel=1e-6)
    assert mean.plain.lo == pytest.approx(x.mean() - mean.margin)
    variance = np.array([x.var(), *(r.var() for r in leave)])
    assert corrected(variance) == pytest.approx(x.var(ddof=1))
    np.testing.assert_allclose(corrected(np.stack([variance, variance])), x.var(ddof=1))


def test_an_undefined_replicate_takes_the_interval_away() -> None:
    found = jackknife(np.array([1.0, 2.0, np.nan]), 0.95)
    assert found.plain.value == 1
    assert np.isnan([found.plain.lo, found.corrected.value]).all()
