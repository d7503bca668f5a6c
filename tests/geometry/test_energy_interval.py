"""The bootstrap of sequences and the jackknife of groups against recomputing every replicate from the rows."""

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.stats import t as student

from isotrace.geometry.energy_interval import LeftOut, left_out, resampled
from isotrace.geometry.jackknife import group_labels
from isotrace.geometry.moments import Moments, empty, merge, moments
from isotrace.seeding import generator

SPEC = {"seed": 4, "resamples": 30, "confidence": 0.9}


@pytest.mark.parametrize("centred", [False, True])
def test_equals_resampling_rows(centred: bool) -> None:
    rng = np.random.default_rng(0)
    x, sequence = rng.standard_normal((60, 6)) + (0 if centred else 1), rng.integers(0, 9, 60)
    q = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    found = resampled(x, sequence, [q], centred, SPEC).fractions[0]
    counts = generator(4, "bootstrap", "sequence", 9).multinomial(9, np.full(9, 1 / 9), size=30)
    for draw, row in zip(counts, found, strict=True):
        picked = np.concatenate([np.tile(x[sequence == s], (c, 1)) for s, c in enumerate(draw)])
        y = picked - picked.mean(axis=0) if centred else picked
        np.testing.assert_allclose(row, np.cumsum(((y @ q) ** 2).sum(axis=0)) / (y**2).sum(), rtol=1e-10)


def test_dependence_within_a_sequence_widens_the_interval() -> None:
    rng = np.random.default_rng(1)
    common = np.repeat(rng.standard_normal((30, 5)), 10, axis=0)
    basis, spec = [np.eye(5)[:, :2]], SPEC | {"resamples": 400}
    lo, hi = resampled(common, np.repeat(np.arange(30), 10), basis, False, spec).interval(0, 1)
    free_lo, free_hi = resampled(common, np.arange(300), basis, False, spec).interval(0, 1)
    assert hi - lo > 2 * (free_hi - free_lo)


def test_a_single_sequence_gives_no_interval() -> None:
    found = resampled(np.eye(4), np.zeros(4, int), [np.eye(4)[:, :2]], False, SPEC)
    assert np.isnan(found.interval(0, 2)).all()
    assert found.missing == "no interval: all rows are from one sequence"


def parts(x: np.ndarray, label: np.ndarray) -> list[Moments]:
    return [moments(x[label == g]) for g in np.unique(label)]


def without(x: np.ndarray, groups: Sequence[Moments], q: np.ndarray, centred: bool = False) -> LeftOut:
    return left_out(moments(x), groups, [q], centred, SPEC)


@pytest.mark.parametrize("centred", [False, True])
def test_groups_give_the_jackknife_of_rows(centred: bool) -> None:
    rng = np.random.default_rng(2)
    x, label = rng.standard_normal((90, 6)) * 1e-3 + 5, np.sort(rng.integers(0, 7, 90))
    q = np.linalg.qr(rng.standard_normal((6, 3)))[0]
    found = without(x, parts(x, label), q, centred)
    wanted = []
    for kept in (np.ones(90, bool), *(label != g for g in range(7))):
        y = x[kept] - x[kept].mean(axis=0) if centred else x[kept]
        wanted.append(np.cumsum(np.square(y @ q).sum(axis=0)) / np.square(y).sum())
    np.testing.assert_allclose(found.fractions[0], wanted, rtol=1e-8)
    whole, *rest = np.array(wanted)[:, 1]
    margin = student.ppf(0.95, 6) * np.sqrt(6 * np.var(rest))
    np.testing.assert_allclose(found.interval(0, 2), [whole - margin, whole + margin], rtol=1e-8)


def test_neither_the_order_of_groups_nor_empty_ones_count() -> None:
    rng = np.random.default_rng(3)
    x, q = rng.standard_normal((60, 5)) + 1, np.eye(5)[:, :2]
    groups = parts(x, np.arange(60) // 6)
    expected = without(x, groups, q).interval(0, 2)
    turned = [groups[i] for i in rng.permutation(10)]
    for others in (turned, [empty(5), *groups[:4], empty(5), *groups[4:]]):
        np.testing.assert_allclose(without(x, others, q).interval(0, 2), expected, rtol=1e-12)


def test_a_single_group_gives_no_jackknife() -> None:
    x = np.random.default_rng(4).standard_normal((40, 4))
    found = without(x, [empty(4), moments(x)], np.eye(4)[:, :2])
    assert np.isnan(found.interval(0, 2)).all()
    assert found.missing == "no interval: all rows are from one group of sequences"


def test_a_jackknife_stays_a_share_and_is_none_where_a_replicate_has_no_energy() -> None:
    ends = [np.tile(np.eye(3)[i], (20, 1)) for i in (0, 1)]
    found = without(np.concatenate(ends), [moments(end) for end in ends], np.eye(3)[:, :2])
    assert found.interval(0, 1) == (0, 1)
    np.testing.assert_allclose(found.interval(0, 2), [1, 1], rtol=1e-12)
    varied = moments(np.random.default_rng(5).standard_normal((20, 3)))
    for value in (0.1, 0.3, 0.7, 1.1, 1.3):  # without the first group, what is left may round to a little energy
        alike = np.full((7, 3), value)
        whole, groups = merge(varied, moments(alike)), [varied, moments(alike)]
        assert np.isnan(left_out(whole, groups, [np.eye(3)[:, :1]], True, SPEC).interval(0, 1)).all()


@pytest.mark.parametrize("groups", [20, 40])
def test_bootstrap_and_jackknife_of_the_same_rows_agree_in_size(groups: int) -> None:
    rng = np.random.default_rng(6)
    sequence = np.repeat(np.arange(200), 8)
    common = rng.standard_normal((200, 6))[sequence]
    x = (common + rng.standard_normal((1600, 6))) * np.arange(1, 7) ** -0.5
    spec, bases = SPEC | {"resamples": 400, "confidence": 0.95}, [np.eye(6)]
    rows = resampled(x, sequence, bases, False, spec)
    grouped = left_out(moments(x), parts(x, group_labels(sequence, groups)), bases, False, spec)
    for rank in range(1, 6):
        by_rows, by_groups = (float(np.diff(found.interval(0, rank))[0]) for found in (rows, grouped))
        assert 1 / 1.5 < by_groups / by_rows < 1.5
