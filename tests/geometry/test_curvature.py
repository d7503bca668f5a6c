"""Curvature visibility against the stored oracle, its leading order, and symmetry in the sign of the curvature."""

import json
from pathlib import Path

import numpy as np
import pytest

from isotrace.geometry.curvature import arc_length, curvature_excess, leading_excess, tangent_reach

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "curvature_visibility.json").read_text())


@pytest.mark.parametrize("row", ORACLE["rows"], ids=lambda r: f"{r['curvature']}-{r['ambient_radius']}")
def test_oracle(row: dict[str, float]) -> None:
    kappa, rho = row["curvature"], row["ambient_radius"]
    reach = tangent_reach(kappa, rho)
    assert reach == pytest.approx(row["u"], rel=1e-12)
    assert arc_length(kappa, reach) == pytest.approx(row["arc"], rel=1e-12)
    # the stored excess is a difference of two numbers near 1, good to some 1e-11
    assert curvature_excess(kappa, rho) == pytest.approx(row["excess"], abs=1e-11)
    assert leading_excess(kappa, rho) == pytest.approx(row["leading"], rel=1e-12)


def test_excess_tends_to_its_leading_order_with_the_square_of_the_radius() -> None:
    radius = 2.0 ** -np.arange(1, 6)
    miss = np.abs(curvature_excess(1.0, radius) / leading_excess(1.0, radius) - 1)
    assert np.all(miss[1:] < miss[:-1] / 3)
    assert miss[-1] < 1e-3


def test_sign_of_the_curvature_does_not_matter() -> None:
    assert curvature_excess(-1.5, 0.5) == pytest.approx(curvature_excess(1.5, 0.5))
