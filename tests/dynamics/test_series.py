"""Series: logs, means, and draws within the errors."""

import numpy as np
import pytest
from made_up import SPEC, energy

from isotrace.dynamics.measures import MEASURES, cells
from isotrace.dynamics.series import build, mean_series, run_means, with_bucket_means


def series(height=lambda model, step, site, b: b + step / 100):
    frame = cells("energy.ratio", {"energy": energy(height)}, {"basis": ("fixed",)}, {"rank": 8})
    return build(frame, MEASURES["energy.ratio"])


def test_values_and_bounds_are_natural_logs():
    first = series()[0]
    assert (first.model, first.site, first.bucket) == ("decoder", "block.0", "b0")
    assert first.value == pytest.approx(first.step / 100)
    assert first.hi - first.value == pytest.approx(np.full(8, 0.05))
    assert first.x[0] == 0.0


def test_draws_have_the_errors_the_interval_says():
    drawn = series()[0].draws(4000, np.random.default_rng(0), confidence=0.95)
    assert drawn.std(axis=0) == pytest.approx(np.full(8, 0.05 / 1.96), rel=0.1)


def test_means_keep_common_checkpoints_only():
    b0, b1 = series()[:2]
    shorter = mean_series([b1], site="block.0", bucket="b1")
    assert shorter is not None
    mean = mean_series(
        [b0, type(b0)(**{**vars(b1), **{n: getattr(b1, n)[2:] for n in ("step", "phase", "value", "lo", "hi")}})],
        site="s",
        bucket="all",
    )
    assert list(mean.step) == list(b0.step[2:])
    assert mean.value == pytest.approx(0.5 + mean.step / 100)
    assert mean_series([], site="s", bucket="all") is None


def test_bucket_and_run_means():
    every = with_bucket_means(series())
    assert sum(s.bucket == "all" for s in every) == 4
    (run,) = run_means(series())
    assert run.value == pytest.approx(1 + run.step / 100)


def test_a_table_that_was_not_made_has_no_cells():
    assert build(cells("energy.ratio", {}, {}, SPEC), MEASURES["energy.ratio"]) == []
