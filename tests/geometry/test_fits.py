"""Bases of all sites, and with a checkpoint left out."""

import numpy as np
import pytest

from isotrace.errors import DataError
from isotrace.geometry.fits import fit_sites, leave_one_out
from isotrace.geometry.moments import moments
from isotrace.geometry.subspaces import principal_angles

PLAIN = {"center": "global", "scale": "none", "seed": 0}


def parts(site: int) -> list[np.ndarray]:
    return [np.random.default_rng([site, c]).standard_normal((80, 6)) * np.arange(1, 7) for c in range(3)]


ROWS = {f"block.{i}": parts(i) for i in range(2)}
MOMENTS = {site: [[moments(x)] for x in listed] for site, listed in ROWS.items()}


def test_sites_are_fitted_independently() -> None:
    both = fit_sites("pca", "fixed", MOMENTS, 3, **PLAIN)
    alone = fit_sites("pca", "fixed", {"block.1": MOMENTS["block.1"]}, 3, **PLAIN)
    assert both.sites == ("block.0", "block.1")
    assert both.vectors.shape == (2, 6, 3)
    np.testing.assert_array_equal(both.at("block.1", 2), alone.at("block.1", 2))
    assert both.n_tokens.tolist() == [240, 240]


def test_leaving_one_out_equals_fitting_the_others() -> None:
    left = leave_one_out("pca", ["step0", "step1", "step2"], MOMENTS, 2, **PLAIN)
    others = {site: [listed[0], listed[2]] for site, listed in MOMENTS.items()}
    expected = fit_sites("pca", "leave_one_out", others, 2, **PLAIN)
    np.testing.assert_array_equal(left["step1"].vectors, expected.vectors)
    assert left["step1"].kind == "leave_one_out"


def test_semi_nmf_reads_rows_under_the_same_switches() -> None:
    moved = {site: [x + 100 * i for i, x in enumerate(listed)] for site, listed in ROWS.items()}
    switches = {"center": "checkpoint", "scale": "trace", "seed": 0}
    still = fit_sites("semi_nmf", "fixed", MOMENTS, 2, rows_by_site=ROWS, **switches)
    shifted_moments = {site: [[moments(x)] for x in listed] for site, listed in moved.items()}
    shifted = fit_sites("semi_nmf", "fixed", shifted_moments, 2, rows_by_site=moved, **switches)
    assert principal_angles(still.at("block.0", 2), shifted.at("block.0", 2)).max() < 1e-5
    left = leave_one_out("semi_nmf", ["a", "b", "c"], MOMENTS, 2, rows_by_site=ROWS, **switches)
    assert sorted(left) == ["a", "b", "c"]


def test_one_checkpoint_cannot_be_left_out() -> None:
    with pytest.raises(DataError, match="at least two early"):
        leave_one_out("pca", ["step0"], {"embed": [[moments(np.eye(4))]]}, 1, **PLAIN)
