"""Contact order: planted orders are found at the apex, noise is the intercept, and turning changes nothing."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrace.geometry.contact import contact, fit_law, medoid
from isotrace.geometry.undefined import Undefined


def surface(power: float, *, n: int = 1200, d: int = 12, rank: int = 2, noise: float = 0.0) -> np.ndarray:
    """n rows on z = |u|^power over a disc about the origin, turned at random in d dimensions."""
    random = np.random.default_rng(0)
    u = random.normal(size=(n, rank))
    u *= (random.uniform(size=n) ** (1 / rank) / np.linalg.norm(u, axis=1))[:, None]
    flat = np.concatenate([u, np.linalg.norm(u, axis=1)[:, None] ** power, np.zeros((n, d - rank - 1))], axis=1)
    return (flat + noise * random.normal(size=(n, d))) @ np.linalg.qr(random.normal(size=(d, d)))[0]


@pytest.mark.parametrize("power", [1.0, 2.0, 3.0])
def test_order_at_the_apex(power: float) -> None:
    found = contact(surface(power), rank=2, neighbours=300, base=np.zeros(12))
    assert found.law.order == pytest.approx(power, abs=0.15)


def test_noise_is_the_intercept_not_the_slope() -> None:
    found = contact(surface(2.0, noise=0.02), rank=2, neighbours=500, base=np.zeros(12))
    assert found.law.order == pytest.approx(2.0, abs=0.2)
    assert found.law.offset == pytest.approx(0.02 * np.sqrt(10), rel=0.25)
    assert found.law.curvature == pytest.approx(2.0, rel=0.15)


def test_centred_off_the_cloud_normal_distance_does_not_shrink() -> None:
    """About the centroid, which lies off a bent sheet, r_N is nearly the same near and far."""
    rows = surface(2.0)
    found = contact(rows, rank=2, neighbours=100, base=rows.mean(axis=0))
    slope = np.polyfit(np.log(found.tangent), np.log(found.normal), 1)[0]
    assert abs(slope) < 0.3


def test_rotation_and_shift_do_not_matter() -> None:
    rows = surface(2.0, n=400)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    moved = rows @ turn + 5.0
    assert medoid(moved) == medoid(rows)
    found, again = (contact(r, rank=2, neighbours=150).law.order for r in (rows, moved))
    assert again == pytest.approx(found, abs=0.01)


@settings(max_examples=60)
@given(order=st.floats(0.5, 4), offset=st.floats(0, 0.3), scale=st.floats(1e-4, 1e4))
def test_an_exact_law_is_found_in_any_unit(order: float, offset: float, scale: float) -> None:
    t = np.linspace(0.05, 1, 200)
    law = fit_law(t * scale, np.hypot(offset, 0.7 * t**order))
    assert law.order == pytest.approx(order, abs=0.03)
    np.testing.assert_allclose(law.at(t * scale), np.hypot(offset, 0.7 * t**order), rtol=0.05, atol=1e-3)


def test_curvature_is_that_of_a_parabola() -> None:
    t = np.linspace(0.01, 1, 300)
    assert fit_law(t, np.hypot(0.05, 1.5 * t**2 / 2)).curvature == pytest.approx(1.5, rel=1e-3)


def test_too_few_rows_or_a_flat_cloud() -> None:
    flat = np.zeros((100, 6))
    flat[:, :2] = np.random.default_rng(4).normal(size=(100, 2))
    with pytest.raises(Undefined, match="lie in their tangent"):
        contact(flat, rank=2, neighbours=50)
    with pytest.raises(Undefined, match="too few rows"):
        contact(flat[:8], rank=2, neighbours=50)
    with pytest.raises(Undefined, match="equally far"):
        fit_law(np.ones(30), np.arange(1.0, 31))
