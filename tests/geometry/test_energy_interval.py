"""The sequence bootstrap against recomputing every resample from the rows."""

import numpy as np
import pytest

from isotrace.geometry.energy_interval import resampled
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
