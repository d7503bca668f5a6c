"""Bias and coverage of the corrected score over spectra, tails, numbers of rows and widths."""

import numpy as np
import pytest

from isotrace.geometry.ablation import isotropy_table
from isotrace.geometry.bases import Basis
from isotrace.geometry.isotropy import isoscore_corrected, square_ustat, sums_of
from isotrace.geometry.jackknife import jackknife
from isotrace.geometry.moments import moments
from isotrace.geometry.removal import cloud
from isotrace.geometry.rows import Bucket

GROUPS, CONFIDENCE = 20, 0.95
TAILS = ("normal", "t_rows", "t_entries")


def truth(power: float, d: int) -> float:
    spread = np.arange(1, d + 1.0) ** -power
    return float((spread.sum() ** 2 / np.square(spread).sum() - 1) / (d - 1))


def rows(rng: np.random.Generator, tails: str, power: float, n: int, d: int) -> np.ndarray:
    """Rows with variances i^-power up to a factor; Student's t with 5 degrees of freedom a row or an entry."""
    x = rng.standard_normal((n, d))
    if tails != "normal":
        x /= np.sqrt(rng.chisquare(5, (n, 1 if tails == "t_rows" else d)) / 5)
    return x * np.arange(1, d + 1) ** (-power / 2)


def with_the_same_gram(x: np.ndarray) -> np.ndarray:
    """Rows of width n at most that have the inner products of x (n, d), all that a score reads."""
    if len(x) >= x.shape[1]:
        return x
    values, vectors = np.linalg.eigh(x @ x.T)
    return vectors * np.sqrt(np.maximum(values, 0))


def measured(tails: str, power: float, n: int, d: int, repetitions: int) -> tuple[float, float, float]:
    """Relative bias, its standard error, and the coverage of the interval."""
    rng, right = np.random.default_rng([TAILS.index(tails), int(10 * power), n, d]), truth(power, d)
    found = []
    for _ in range(repetitions):
        base = cloud(with_the_same_gram(rows(rng, tails, power, n, d)), np.arange(n), GROUPS).base
        found.append(jackknife(base.unbiased(d), CONFIDENCE).corrected)
    scores = np.array([f.value for f in found]) / right
    covered = np.mean([f.lo <= right <= f.hi for f in found])
    return float(scores.mean() - 1), float(scores.std() / np.sqrt(repetitions)), float(covered)


def check(tails: str, power: float, n: int, d: int, repetitions: int) -> None:
    bias, error, coverage = measured(tails, power, n, d, repetitions)
    assert abs(bias) <= 0.04 + 2 * error
    assert coverage >= 0.90 - 2 * np.sqrt(0.09 / repetitions)


@pytest.mark.parametrize("tails", TAILS)
@pytest.mark.parametrize(("power", "n", "d"), [(0.0, 32, 64), (0.5, 64, 256), (1.0, 64, 8), (2.0, 128, 64)])
def test_small_samples_are_unbiased_and_covered(tails: str, power: float, n: int, d: int) -> None:
    check(tails, power, n, d, 150)


@pytest.mark.slow
@pytest.mark.parametrize("tails", TAILS)
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0])
def test_the_grid(tails: str, power: float) -> None:
    for n, repetitions, widths in (
        (32, 400, (8, 64, 1024)),
        (128, 300, (8, 1024)),
        (1000, 100, (8, 64)),
        (5000, 60, (64,)),
    ):
        for d in widths:
            check(tails, power, n, d, repetitions)


def test_the_shortcut_of_this_file_is_the_function_that_is_tested() -> None:
    x = rows(np.random.default_rng(0), "t_rows", 1.0, 60, 90)
    found = jackknife(cloud(with_the_same_gram(x), np.arange(60), GROUPS).base.unbiased(90), CONFIDENCE).corrected
    expected = isoscore_corrected(x, np.arange(60), groups=GROUPS, confidence=CONFIDENCE)
    np.testing.assert_allclose([found.value, found.lo, found.hi], [expected.value, expected.lo, expected.hi], rtol=1e-8)


def test_the_squared_trace_is_the_average_over_distinct_rows() -> None:
    x = np.random.default_rng(1).standard_normal((7, 3)) + 5
    half = np.square(x[:, None] - x).sum(axis=2) / 2
    index = np.arange(7)
    terms = [
        half[i, j] * half[k, m] for i in index for j in index for k in index for m in index if len({i, j, k, m}) == 4
    ]
    m = moments(x)
    expected = float(np.mean(terms))
    assert float(sums_of(m).square) == pytest.approx(expected, rel=1e-10)
    assert np.isnan(square_ustat(np.float64(3), np.float64(1), np.float64(1), np.float64(1)))


def test_both_of_its_sums_are_unbiased_and_the_plain_squared_trace_is_not() -> None:
    d, n, spread = 5, 8, np.arange(1, 6.0) ** -1.0
    found = [sums_of(moments(rows(np.random.default_rng(s), "normal", 1.0, n, d))) for s in range(4000)]
    square, f, plain = (
        np.array([values(s) for s in found]) for values in (lambda s: s.square, lambda s: s.ustat, lambda s: s.trace**2)
    )
    for values, right in ((square, spread.sum() ** 2), (f, np.square(spread).sum())):
        assert abs(values.mean() - right) < 4 * values.std() / np.sqrt(len(found))
    assert plain.mean() - spread.sum() ** 2 > 4 * plain.std() / np.sqrt(len(found))


def test_too_few_rows_give_no_number() -> None:
    x = np.random.default_rng(0).standard_normal((32, 4))
    assert np.isfinite(isoscore_corrected(x, np.arange(32), groups=GROUPS, confidence=CONFIDENCE).value)
    found = isoscore_corrected(x[:31], np.arange(31), groups=GROUPS, confidence=CONFIDENCE)
    assert np.isnan([found.value, found.lo, found.hi]).all()


def test_a_denominator_that_is_not_positive_gives_no_number() -> None:
    """Orthogonal rows: no pair of distinct ones has an inner product."""
    found = isoscore_corrected(np.eye(40), np.arange(40), groups=GROUPS, confidence=CONFIDENCE)
    assert np.isnan([found.value, found.lo, found.hi]).all()


def test_below_32_rows_the_corrected_score_alone_says_nothing() -> None:
    x = np.random.default_rng(0).standard_normal((1, 30, 8)) * [4, 3, 1, 1, 1, 1, 1, 1]
    ids, none = np.arange(30), np.zeros(30, np.bool_)
    found = Bucket("b0", ("embed",), x, x, ids, ids, ids, np.ones(30), none)
    basis = Basis("fixed", "pca", ("embed",), np.eye(8)[None, :, :2], np.ones((1, 2)), np.array([30]))
    spec = {"seed": 0, "confidence": CONFIDENCE, "groups": GROUPS, "order": "shrink_then_remove", "shrinkage": 0.1}
    counts = {"ranks": [2], "draws": 19, "draws_corrected": 19, "min_rows": 20, "outlier_threshold": 10.0}
    names = {"null_spaces": ["complement"], "conventions": ["complement"], "outliers": ["kept"], "c0": []}
    frame = isotropy_table(found, [basis], {**spec, **counts, **names, "estimators": ["ustat", "corrected"]}, pooled={})
    silent, speaks = (frame[frame["estimator"] == name] for name in ("corrected", "ustat"))
    assert silent[["score", "score_without_tangent", "p_value"]].isna().all(axis=None)
    assert silent["reason"].str.contains("30 rows, no corrected score below 32").all()
    assert speaks["score"].notna().all()
