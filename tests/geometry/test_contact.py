"""Contact order: 2 on a paraboloid, 3 on a cubic, undecided where the method cannot tell."""

import numpy as np
import pytest

from isotrace.geometry.contact import contact, controlled_order, gradient_slopes, medoid
from isotrace.geometry.undefined import Undefined


def surface(power: float, *, n: int = 1200, d: int = 12, rank: int = 2, noise: float = 0.0) -> np.ndarray:
    """n rows on z = |u|^power over a disc about the origin, turned at random in d dimensions."""
    random = np.random.default_rng(0)
    u = random.normal(size=(n, rank))
    u *= (random.uniform(size=n) ** (1 / rank) / np.linalg.norm(u, axis=1))[:, None]
    flat = np.concatenate([u, np.linalg.norm(u, axis=1)[:, None] ** power, np.zeros((n, d - rank - 1))], axis=1)
    return (flat + noise * random.normal(size=(n, d))) @ np.linalg.qr(random.normal(size=(d, d)))[0]


@pytest.mark.parametrize("power", [2.0, 3.0])
def test_order_at_the_apex(power: float) -> None:
    found = contact(surface(power), rank=2, neighbours=300, base=np.zeros(12))
    assert found.order == pytest.approx(power, abs=0.15)


def test_order_at_the_medoid_of_a_curved_cloud_is_two() -> None:
    assert controlled_order(surface(2.0), rank=2, seed=0) == pytest.approx(2.0, abs=0.2)


def test_noise_is_the_intercept_not_the_slope() -> None:
    found = contact(surface(2.0, noise=0.02), rank=2, neighbours=500, base=np.zeros(12))
    assert found.order == pytest.approx(2.0, abs=0.2)
    assert found.offset == pytest.approx(0.02 * np.sqrt(10), rel=0.25)
    assert found.log_slope < 1.5


def test_centred_off_the_cloud_the_plain_slope_is_near_zero() -> None:
    """About the centroid, which lies off a bent sheet, normal distance does not shrink with tangent distance."""
    rows = surface(2.0)
    assert abs(contact(rows, rank=2, neighbours=100, base=rows.mean(axis=0)).log_slope) < 0.3


def test_rotation_and_shift_do_not_matter() -> None:
    rows = surface(2.0, n=400)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    moved = rows @ turn + 5.0
    assert medoid(moved) == medoid(rows)
    assert contact(moved, rank=2, neighbours=150).order == pytest.approx(
        contact(rows, rank=2, neighbours=150).order, abs=1e-3
    )


def test_a_round_cloud_is_undecided() -> None:
    rows = np.random.default_rng(2).normal(size=(300, 40))
    with pytest.raises(Undefined, match="undecided: controls of order 2"):
        controlled_order(rows, rank=4, seed=0)


def test_gradients_of_first_and_second_order() -> None:
    random = np.random.default_rng(3)
    t = random.uniform(0.1, 1, size=200)
    gradients = np.zeros((200, 5))
    gradients[:, 0], gradients[:, 3] = 2 * t, 0.7 * t**2
    along, across = gradient_slopes(t, gradients, np.eye(5)[:, :2])
    assert (along, across) == (pytest.approx(1.0), pytest.approx(2.0))


def test_too_few_rows_or_a_flat_cloud() -> None:
    flat = np.zeros((100, 6))
    flat[:, :2] = np.random.default_rng(4).normal(size=(100, 2))
    with pytest.raises(Undefined, match="lie in their tangent"):
        contact(flat, rank=2, neighbours=50)
    with pytest.raises(Undefined, match="too few rows"):
        contact(flat[:8], rank=2, neighbours=50)
    with pytest.raises(Undefined, match="too few non-zero gradients"):
        gradient_slopes(np.ones(5), np.zeros((5, 6)), np.eye(6)[:, :2])
