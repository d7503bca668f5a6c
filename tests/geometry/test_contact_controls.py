"""What may be stated of contact and curvature: planted orders or nothing, never a wrong order."""

import numpy as np
import pytest

from isotrace.geometry.contact import medoid
from isotrace.geometry.contact_controls import controlled_contact, window_size
from isotrace.geometry.contact_gradient import gradient_contact
from isotrace.geometry.curvature import curvature_excess
from isotrace.geometry.undefined import Undefined


def bowl(
    order: float, *, n: int, rank: int, height: float, noise: float, normals: int = 1, seed: int = 0, d: int = 128
) -> np.ndarray:
    """n rows of z = height |u|^order about row 0, round or by random quadratic forms in ``normals`` directions."""
    random = np.random.default_rng(seed)
    u = random.normal(size=(n, rank))
    u *= (random.uniform(size=n) ** (1 / rank) / np.linalg.norm(u, axis=1))[:, None]
    u[0] = 0
    reach = np.linalg.norm(u, axis=1)
    form = np.ones((n, 1))
    if normals > 1:
        matrices = random.normal(size=(normals, rank, rank))
        form = np.einsum("ni,jil,nl->nj", u, matrices, u) / np.where(reach > 0, reach, 1)[:, None] ** 2
        form /= np.sqrt(np.mean(np.sum(form**2, axis=1)))
    z = height * reach[:, None] ** order * form
    rows = np.concatenate([u, z, np.zeros((n, d - rank - z.shape[1]))], axis=1) + noise * random.normal(size=(n, d))
    return rows @ np.linalg.qr(random.normal(size=(d, d)))[0]


def test_paraboloid_in_128_dimensions_is_stated() -> None:
    rows = bowl(2, n=2000, rank=4, height=0.3, noise=0.002)
    stated = controlled_contact(rows, rank=4, seed=0, base=0)
    assert stated.order.stated() == pytest.approx(2.0, abs=0.2)


def test_visibility_is_that_of_the_planted_curvature() -> None:
    rows = bowl(2, n=2000, rank=4, height=0.3, noise=0.002)
    found = controlled_contact(rows, rank=4, seed=0, base=0).visibility.stated()
    reach = np.sort(np.linalg.norm(rows - rows[0], axis=1))[window_size(2000, 4)]
    assert found == pytest.approx(float(curvature_excess(0.6, reach)), rel=0.25)


def test_medoid_of_a_curved_cloud_is_of_second_order() -> None:
    rows = bowl(2, n=2000, rank=2, height=0.3, noise=0.0002, d=12)
    assert controlled_contact(rows, rank=2, seed=0).order.stated() == pytest.approx(2.0, abs=0.2)


def test_turned_and_shifted_rows_have_the_same_verdict() -> None:
    rows = bowl(2, n=2000, rank=2, height=0.3, noise=0.0002, d=12)
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
    first, second = (controlled_contact(r, rank=2, seed=0, base=0).order for r in (rows, rows @ turn + 3))
    assert first.reason == second.reason == ""
    assert second.value == pytest.approx(first.value, abs=0.01)


SURFACES = [
    {"order": order, "n": n, "rank": rank, "height": height, "noise": noise, "normals": normals}
    for order in (1, 2, 3)
    for n in (640, 2000)
    for rank, height in ((2, 0.3), (4, 0.3), (4, 1.0), (8, 0.3))
    for noise in (0.0005, 0.01)
    for normals in (1, 3)
]


@pytest.mark.slow
def test_no_wrong_order_is_ever_stated() -> None:
    """Round and generic surfaces, small and large: what is stated has the planted order as its nearest."""
    stated: dict[int, list[float]] = {1: [], 2: [], 3: []}
    for planted in SURFACES:
        rows = bowl(**planted, seed=planted["n"] + planted["rank"])
        verdict = controlled_contact(rows, rank=planted["rank"], seed=0, base=0).order
        assert np.isfinite(verdict.value) == (verdict.reason == "")
        stated[planted["order"]] += [verdict.value] if not verdict.reason else []
    for order, values in stated.items():
        assert values, f"nothing was stated of order {order}"
        assert np.max(np.abs(np.array(values) - order)) < 0.5


@pytest.mark.parametrize("law", ["gaussian", "decaying"])
def test_a_cloud_without_a_tangent_is_undecided(law: str) -> None:
    random = np.random.default_rng(2)
    rows = random.normal(size=(640, 128)) * (1.0 if law == "gaussian" else np.arange(1, 129) ** -0.5)
    stated = controlled_contact(rows, rank=8, seed=0)
    assert np.isnan(stated.order.value)
    for verdict in (stated.order, stated.visibility):
        with pytest.raises(Undefined, match="undecided: no tangent of rank 8"):
            verdict.stated()


def test_noise_that_hides_the_curvature_is_undecided() -> None:
    rows = bowl(2, n=640, rank=2, height=0.1, noise=0.05)
    assert "undecided" in controlled_contact(rows, rank=2, seed=0, base=0).order.reason


def gradients(rows: np.ndarray, tangent: int, normal: int, *, noise: float, rank: int = 2) -> np.ndarray:
    """Rows of size |t|^tangent along the sheet of rows and |t|^normal off it, with log-normal scatter."""
    random = np.random.default_rng(5)
    offsets = rows - rows[0]
    basis = np.linalg.svd(offsets, full_matrices=False)[2]
    t = np.linalg.norm(offsets @ basis[:rank].T, axis=1, keepdims=True)
    n, d = rows.shape
    along, across = random.normal(size=(n, rank)), random.normal(size=(n, d - rank))
    along, across = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in (along, across))
    scatter = np.exp(0.1 * random.normal(size=(2, n, 1)))
    flat = np.concatenate([t**tangent * scatter[0] * along, t**normal * scatter[1] * across], axis=1)
    return (flat + noise * random.normal(size=(n, d))) @ basis


@pytest.mark.parametrize(("tangent", "normal"), [(1, 2), (1, 1), (1, 3), (2, 2)])
def test_gradient_orders_and_their_ratio(tangent: int, normal: int) -> None:
    rows = bowl(2, n=2000, rank=2, height=0.02, noise=0.001, d=40)
    found = gradient_contact(rows, gradients(rows, tangent, normal, noise=1e-4), rank=2, seed=0, base=0)
    assert found.tangent.stated() == pytest.approx(tangent, abs=0.2)
    assert found.normal.stated() == pytest.approx(normal, abs=0.2)
    assert found.ratio.stated() == pytest.approx(normal / tangent, abs=0.25)


def test_gradients_that_do_not_know_the_distance_are_undecided() -> None:
    rows = bowl(2, n=640, rank=2, height=0.02, noise=0.001, d=40)
    found = gradient_contact(rows, np.random.default_rng(6).normal(size=rows.shape), rank=2, seed=0)
    for verdict in (found.tangent, found.normal, found.ratio):
        assert np.isnan(verdict.value)
        assert "undecided" in verdict.reason


def test_gradients_without_a_normal_part_say_so() -> None:
    rows = bowl(2, n=640, rank=2, height=0.02, noise=0.001, d=40)
    found = gradient_contact(rows, np.zeros_like(rows), rank=2, seed=0)
    assert {v.reason for v in (found.tangent, found.normal, found.ratio)} == {"too few non-zero gradients"}


def test_medoid_is_a_row_in_the_middle() -> None:
    line = np.stack([np.arange(9.0), np.zeros(9)], axis=1)
    assert medoid(line) == 4
