"""Scores against the oracle, their invariances, and their bias in small samples."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.covariance import ledoit_wolf

from isotrace.errors import ConfigError
from isotrace.geometry.isotropy import (
    isoscore_corrected,
    isoscore_plugin,
    isoscore_star,
    isoscore_ustat,
    star_weight,
    sums_of,
)
from isotrace.geometry.moments import moments

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "isotropy.json").read_text())["rows"]


def drawn(case: dict) -> np.ndarray:
    x = np.random.Generator(np.random.PCG64(case["seed"])).standard_normal((case["n"], case["d"]))
    return (x * np.sqrt(np.arange(1, case["d"] + 1) ** -case["power"]) + case["mean"]) * case["scale"]


@pytest.mark.parametrize("case", ORACLE, ids=lambda c: str(c["seed"]))
def test_matches_the_oracle(case: dict) -> None:
    m = moments(drawn(case))
    s = sums_of(m)
    assert isoscore_plugin(m) == pytest.approx(case["isoscore_plugin"], rel=1e-9)
    assert isoscore_ustat(m) == pytest.approx(case["isoscore_ustat"], rel=1e-9)
    assert float(s.ustat) == pytest.approx(case["tr_sigma_sq_unbiased"], rel=1e-9)
    assert float(s.frobenius) == pytest.approx(case["frobenius_sq"], rel=1e-9)
    assert float(s.trace) == pytest.approx(case["trace"], rel=1e-9)
    if "isoscore_reference_package" in case:
        assert isoscore_plugin(m) == pytest.approx(case["isoscore_reference_package"], abs=1e-6)


def test_ustat_is_the_average_over_distinct_rows() -> None:
    x = np.random.default_rng(0).standard_normal((6, 3)) + 5
    gram = x @ x.T
    index = range(6)
    terms = {2: 0.0, 3: 0.0, 4: 0.0}
    counts = dict.fromkeys(terms, 0)
    for i in index:
        for j in set(index) - {i}:
            terms[2] += gram[i, j] ** 2
            counts[2] += 1
            for k in set(index) - {i, j}:
                terms[3] += gram[i, j] * gram[j, k]
                counts[3] += 1
                for m in set(index) - {i, j, k}:
                    terms[4] += gram[i, j] * gram[k, m]
                    counts[4] += 1
    expected = terms[2] / counts[2] - 2 * terms[3] / counts[3] + terms[4] / counts[4]
    assert float(sums_of(moments(x)).ustat) == pytest.approx(expected, rel=1e-9)


@settings(max_examples=25)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.floats(1e-6, 1e6),
    shift=st.floats(-1e3, 1e3),
)
def test_rotation_scale_translation_and_order_change_nothing(seed: int, scale: float, shift: float) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((40, 5)) * np.arange(1, 6)
    turn = np.linalg.qr(rng.standard_normal((5, 5)))[0]
    a, b = moments(x), moments(((x @ turn) + shift)[rng.permutation(40)] * scale)
    assert isoscore_plugin(b) == pytest.approx(isoscore_plugin(a), rel=1e-8)
    assert isoscore_ustat(b) == pytest.approx(isoscore_ustat(a), rel=1e-7)
    for c0 in ("scaled_identity", "ledoit_wolf"):
        before, after = (isoscore_star(m, c0=c0, shrinkage=0.1) for m in (a, b))
        assert after == pytest.approx(before, rel=1e-7)


@pytest.mark.parametrize("c0", ["scaled_identity", "identity", "pooled"])
def test_star_equals_the_score_of_the_mixed_matrix(c0: str) -> None:
    m = moments(np.random.default_rng(1).standard_normal((50, 4)) * [3, 2, 1, 1])
    other = np.diag([1.0, 5.0, 2.0, 1.0])
    target = {"scaled_identity": np.trace(m.covariance) / 4 * np.eye(4), "identity": np.eye(4), "pooled": other}[c0]
    values = np.linalg.eigvalsh(0.7 * m.covariance + 0.3 * target)
    expected = (values.sum() ** 2 / (values**2).sum() - 1) / 3
    assert isoscore_star(m, c0=c0, shrinkage=0.3, pooled=other) == pytest.approx(expected, rel=1e-12)


def test_ledoit_wolf_weight_is_the_published_one() -> None:
    x = np.random.default_rng(2).standard_normal((30, 8)) * np.arange(1, 9)
    s = sums_of(moments(x))
    assert float(star_weight(s, "ledoit_wolf", 0.1, 8)) == pytest.approx(ledoit_wolf(x)[1], rel=1e-9)


def test_identity_saturates_on_small_values() -> None:
    tiny = moments(np.random.default_rng(0).standard_normal((200, 6)) * [1e-4, 0, 0, 0, 0, 0])
    assert isoscore_star(tiny, c0="identity", shrinkage=0.1) > 0.999
    assert isoscore_star(tiny, c0="scaled_identity", shrinkage=0.1) < 0.1


def test_corrected_removes_the_bias_of_small_samples() -> None:
    spread = np.arange(1, 65) ** -1.0
    truth = (spread.sum() ** 2 / (spread**2).sum() - 1) / 63
    scores = []
    for seed in range(60):
        x = np.random.default_rng(seed).standard_normal((60, 64)) * np.sqrt(spread)
        found = isoscore_corrected(x, np.arange(60) // 3, groups=20, confidence=0.95)
        scores.append((isoscore_plugin(moments(x)), isoscore_ustat(moments(x)), found.value))
        assert found.lo < found.value < found.hi
    plugin, ustat, corrected = np.abs(np.mean(scores, axis=0) - truth)
    assert corrected < ustat
    assert corrected < plugin / 4


def test_one_outlier_row_decides_the_plain_score() -> None:
    x = np.random.default_rng(0).standard_normal((2000, 16))
    assert isoscore_plugin(moments(x)) > 0.95
    x[0] *= 300
    assert isoscore_plugin(moments(x)) < 0.05


def test_undefined_scores() -> None:
    constant = moments(np.ones((10, 3)))
    assert np.isnan(isoscore_plugin(constant))
    assert np.isnan(isoscore_ustat(moments(np.eye(3))))
    with pytest.raises(ConfigError, match="'wishart' is not one of"):
        isoscore_star(moments(np.eye(4)), c0="wishart", shrinkage=0.1)
    with pytest.raises(ConfigError, match="covariance over all buckets"):
        isoscore_star(moments(np.eye(4)), c0="pooled", shrinkage=0.1)
