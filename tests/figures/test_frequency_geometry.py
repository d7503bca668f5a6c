"""Frequency figure: correlations as in the table, the scatter only of the latest step and only if it is given."""

import numpy as np
import pandas as pd
import synthetic

from isotrace.figures.frequency_geometry import _running_median, data, draw


def test_points_are_optional_and_of_the_latest_step():
    tables = {"frequency": synthetic.frequency()}
    assert set(data(tables, {})["part"]) == {"correlation"}
    points = synthetic.frequency_points()
    early = points.assign(step=1, norm=0.0)
    tables["frequency_points"] = pd.concat([early, points])
    scatter = data(tables, {}).query("part == 'points'")
    assert set(scatter["step"]) == {800}
    assert len(scatter) == len(points)
    fig, _ = draw(tables, {})
    assert len(fig.axes) == 8


def test_correlations_keep_the_tables_numbers():
    table = synthetic.frequency(models=("decoder",))
    drawn = data({"frequency": table}, {}).query("kind == 'static' and of == 'norm'").sort_values("step")
    want = table.query("kind == 'static' and of == 'norm'").sort_values("step")
    np.testing.assert_array_equal(drawn["spearman"], want["spearman"])
    np.testing.assert_array_equal(drawn["lo"], want["lo"])


def test_running_median_follows_a_monotone_curve():
    count = np.arange(1.0, 1001.0)
    x, y = _running_median(count, -count)
    assert len(x) == 10
    np.testing.assert_array_equal(y, -x)
