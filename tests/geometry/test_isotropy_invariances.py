"""What turning, scaling, moving, reordering, copying and padding rows does to each estimator; the authors' package."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from IsoScore.IsoScore import IsoScore

from isotrace.geometry.isotropy import (
    isoscore,
    isoscore_corrected,
    isoscore_plugin,
    isoscore_star,
    isoscore_ustat,
    star_weight,
    sums_of,
)
from isotrace.geometry.jackknife import jackknife
from isotrace.geometry.moments import moments
from isotrace.geometry.removal import cloud

SEEDS = st.integers(0, 2**32 - 1)
N, D, GROUPS = 60, 6, 20
SEQUENCE = np.arange(N) // 2


def drawn(seed: int, heavy: bool = False) -> np.ndarray:
    rng = np.random.default_rng(seed)
    rows = rng.standard_t(5, (N, D)) if heavy else rng.standard_normal((N, D))
    return rows * np.arange(1, D + 1) ** -0.7 + rng.standard_normal(D)


def estimates(rows: np.ndarray, sequence: np.ndarray) -> dict[str, float]:
    m = moments(rows)
    found = isoscore_corrected(rows, sequence, groups=GROUPS, confidence=0.95)
    return {
        "plugin": isoscore_plugin(m),
        "star": isoscore_star(m, c0="scaled_identity", shrinkage=0.1),
        "star_ledoit_wolf": isoscore_star(m, c0="ledoit_wolf", shrinkage=0.1),
        "ustat": isoscore_ustat(m),
        "corrected": found.value,
        "corrected_lo": found.lo,
        "corrected_hi": found.hi,
    }


@settings(max_examples=20)
@given(seed=SEEDS, scale=st.floats(1e-6, 1e6), shift=st.floats(-1e3, 1e3), heavy=st.booleans())
def test_all_four_ignore_rotation_scale_translation_and_order(seed, scale, shift, heavy):
    rng = np.random.default_rng(seed)
    rows = drawn(seed, heavy)
    turn, order = np.linalg.qr(rng.standard_normal((D, D)))[0], rng.permutation(N)
    before, after = estimates(rows, SEQUENCE), estimates((rows @ turn + shift)[order] * scale, SEQUENCE[order])
    # The bias correction multiplies the rounding of a shift of 1000 standard deviations by the number of groups.
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6)


@settings(max_examples=20)
@given(seed=SEEDS, extra=st.integers(1, 30))
def test_null_dimensions_count_in_the_denominator_and_nowhere_else(seed, extra):
    rows = drawn(seed)
    padded = np.hstack([rows, np.zeros((N, extra))])
    before, after = estimates(rows, SEQUENCE), estimates(padded, SEQUENCE)
    for name in ("plugin", "ustat", "corrected", "corrected_lo", "corrected_hi"):
        assert after[name] * (D + extra - 1) == pytest.approx(before[name] * (D - 1), rel=1e-9)
    s, z = sums_of(moments(rows)), 0.1
    spread = (1 - z) ** 2 * s.frobenius + (2 * z * (1 - z) + z**2) * s.trace**2 / (D + extra)
    assert after["star"] == pytest.approx(float(isoscore(s.trace, spread, D + extra)), rel=1e-9)


@settings(max_examples=20)
@given(seed=SEEDS, copies=st.integers(2, 4))
def test_copies_of_the_data_set_change_the_estimators_that_read_n_and_no_others(seed, copies):
    rows = drawn(seed)
    more, sequence = np.tile(rows, (copies, 1)), np.tile(SEQUENCE, copies)
    before, after = estimates(rows, SEQUENCE), estimates(more, sequence)
    for name in ("plugin", "star"):
        assert after[name] == pytest.approx(before[name], rel=1e-9)
    # The unbiased denominator takes copies for further rows, which hold no news: it tends to the plug-in.
    gaps = [abs(e["ustat"] - e["plugin"]) for e in (before, after)]
    assert gaps[1] == pytest.approx(gaps[0] / copies, rel=0.35)
    weights = [float(star_weight(sums_of(moments(r)), "ledoit_wolf", 0.1, D)) for r in (rows, more)]
    assert weights[1] == pytest.approx(weights[0] / copies, rel=1e-9) or weights[0] == 1


@settings(max_examples=10)
@given(seed=SEEDS)
def test_copies_within_their_sequences_leave_the_interval_of_the_plug_in_as_it_was(seed):
    rows = drawn(seed)

    def margin(values: np.ndarray, sequence: np.ndarray) -> float:
        base = cloud(values, sequence, GROUPS).base
        return jackknife(isoscore(base.trace, base.frobenius, D), 0.95).margin

    same, other = np.tile(SEQUENCE, 2), np.r_[SEQUENCE, SEQUENCE + N]
    more = np.tile(rows, (2, 1))
    assert margin(more, same) == pytest.approx(margin(rows, SEQUENCE), rel=1e-7)
    assert margin(more, other) < margin(rows, SEQUENCE)


@settings(max_examples=25)
@given(seed=SEEDS, n=st.integers(3, 60), d=st.integers(2, 12), power=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
def test_the_plug_in_is_the_score_of_the_authors_package(seed, n, d, power):
    rows = np.random.default_rng(seed).standard_normal((n, d)) * np.arange(1, d + 1) ** (-power / 2)
    assert isoscore_plugin(moments(rows)) == pytest.approx(float(IsoScore(rows)), abs=1e-6)
