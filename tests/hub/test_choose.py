"""Which checkpoints of a long series are taken."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.errors import ConfigError
from isotrace.hub.choose import chosen
from isotrace.settings.sources import Revisions

PYTHIA = [0, *(2**i for i in range(10)), *range(1000, 143_001, 1000)]


def taken(steps, **revisions):
    return [steps[i] for i in chosen(steps, Revisions(**revisions))]


def test_all_of_them_up_to_a_step():
    assert taken(PYTHIA) == taken(PYTHIA, take="all") == PYTHIA
    assert taken(PYTHIA, max=4) == [0, 1, 2, 4]


def test_every_nth_and_the_last():
    assert taken([0, 1, 2, 3, 4, 5, 6, 7], take={"every": 3}) == [0, 3, 6, 7]
    assert taken([0, 1, 2, 3], take={"every": 3}) == [0, 3]


def test_evenly_in_the_logarithm():
    assert taken([2**i for i in range(13)], take={"log": 5}) == [1, 8, 64, 512, 4096]
    assert taken([0, *(2**i for i in range(13))], take={"log": 6}) == [0, 1, 8, 64, 512, 4096]
    gaps = [math.log(b / a) for a, b in zip(*(lambda s: (s[1:], s[2:]))(taken(PYTHIA, take={"log": 12})), strict=False)]
    assert max(gaps) < 1.5 * math.log(143_000) / 10


def test_named_steps():
    assert taken(PYTHIA, take={"steps": [512, 0]}) == [0, 512]
    with pytest.raises(ConfigError, match=r"take.steps: \[3\] are not among the steps \[0, 1, 2, 4, …, 143000\] \(154"):
        taken(PYTHIA, take={"steps": [3]})
    with pytest.raises(ConfigError, match="max: 9 is below the first step 10"):
        taken([10, 20], max=9)


@given(steps=st.lists(st.integers(0, 10**6), min_size=1, max_size=40).map(sorted), number=st.integers(2, 45))
def test_as_many_as_asked_for_with_both_ends(steps, number):
    found = chosen(steps, Revisions(take={"log": number}))
    assert found == sorted(set(found))
    zeros = steps.count(0)
    assert len(found) == (min(number, len(steps)) if zeros < number else len(found))
    if zeros < number:
        assert found[-1] == len(steps) - 1 or steps[found[-1]] == steps[-1]
