"""Deleted groups equal clouds built from the rows that stay; the jackknife equals the textbook error of a mean."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.geometry.cloud import Cloud, deleted_groups, jackknife
from isotrace.geometry.undefined import Undefined


def cloud(values: np.ndarray, sequence: np.ndarray) -> Cloud:
    return Cloud(values, sequence, seed=0, max_rows=2000)


def average(part: Cloud) -> float:
    return float(part.values.mean())


@settings(max_examples=20)
@given(seed=st.integers(0, 1000), offset=st.sampled_from([0.0, 1000.0]))
def test_sums_of_a_deleted_group_equal_those_of_the_rest(seed: int, offset: float) -> None:
    random = np.random.default_rng(seed)
    whole = cloud(random.normal(size=(80, 5)) + offset, random.integers(0, 17, size=80))
    for part in deleted_groups(whole, 6):
        rest = cloud(part.values, part.sequence)
        np.testing.assert_allclose(part.scatter, rest.scatter, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(part.covariance_spectrum, rest.covariance_spectrum, rtol=1e-9)
        np.testing.assert_allclose(part.moment_spectrum[0], rest.moment_spectrum[0], rtol=1e-12)


def test_every_sequence_is_deleted_once() -> None:
    sequence = np.repeat(np.arange(10), 3)
    whole = cloud(np.arange(30.0)[:, None], sequence)
    parts = list(deleted_groups(whole, 4))
    gone = [set(sequence) - set(part.sequence) for part in parts]
    assert len(parts) == 4
    assert sorted(s for group in gone for s in group) == list(range(10))


def test_jackknife_of_a_mean_is_the_standard_error() -> None:
    from scipy.stats import t

    values = np.random.default_rng(0).normal(size=(40, 1))
    found = jackknife(cloud(values, np.arange(40)), {"mean": average}, groups=40, confidence=0.95)["mean"]
    half = t.ppf(0.975, 39) * values.std(ddof=1) / np.sqrt(40)
    assert (found.lo, found.hi) == (pytest.approx(values.mean() - half), pytest.approx(values.mean() + half))


def test_a_measure_that_a_deleted_group_lacks_has_no_interval_and_spoils_no_other() -> None:
    def needs_all(part: Cloud) -> float:
        if part.n < 40:
            raise Undefined("not all here")
        return 1.0

    rows = cloud(np.random.default_rng(0).normal(size=(40, 1)), np.arange(40))
    found = jackknife(rows, {"all": needs_all, "mean": average}, groups=5, confidence=0.95)
    assert (np.isnan(found["all"].lo), found["all"].reason) == (True, "no interval: not all here")
    assert found["mean"].lo < found["mean"].hi


def test_one_sequence_has_no_interval() -> None:
    one = cloud(np.ones((5, 2)), np.zeros(5, int))
    assert (
        jackknife(one, {"mean": average}, groups=20, confidence=0.95)["mean"].reason == "no interval from one sequence"
    )
