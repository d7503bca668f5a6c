"""Look and files of a figure: the step axis, byte-equal output, embedded fonts, atomic writing."""

import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from isotrace.errors import ConfigError
from isotrace.figures import steps, style


def small_figure():
    with style.style():
        fig, axes = style.grid(1, 1, inches=3.25, row_height=1.5)
        rows = pd.DataFrame({"step": [0, 1, 10], "value": [1.0, 2.0, 3.0]})
        rows = rows.assign(lo=rows["value"] - 0.5, hi=rows["value"] + 0.5)
        axis = steps.StepAxis.of(rows["step"])
        steps.line(axes[0][0], axis, rows, color=style.COOL, marker="o")
        axis.apply(axes[0][0])
    return fig, rows


def save_to(folder):
    fig, rows = small_figure()
    paths = {kind: folder / f"f.{kind}" for kind in ("pdf", "png", "csv")}
    style.save(fig, rows, **paths)
    return paths


def test_saving_twice_gives_the_same_bytes(tmp_path):
    first, second = save_to(tmp_path / "a"), save_to(tmp_path / "b")
    for kind in first:
        assert first[kind].read_bytes() == second[kind].read_bytes(), kind
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"f.pdf", "f.png", "f.csv"}


def test_pdf_embeds_truetype_fonts_and_no_date(tmp_path):
    pdf = save_to(tmp_path)["pdf"].read_bytes()
    assert b"/Type3" not in pdf
    assert re.search(rb"/FontFile2", pdf)
    assert b"CreationDate" not in pdf


def test_csv_returns_what_was_drawn(tmp_path):
    paths = save_to(tmp_path)
    pd.testing.assert_frame_equal(pd.read_csv(paths["csv"]), small_figure()[1])


def test_a_failed_write_leaves_the_old_file_and_no_part(tmp_path):
    paths = save_to(tmp_path)
    before = paths["pdf"].read_bytes()

    class Broken(Figure):
        def savefig(self, path, **_):
            path.write_bytes(b"half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        style.save(Broken(), pd.DataFrame(), **paths)
    assert paths["pdf"].read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 3


def test_settings_of_the_caller_neither_leak_in_nor_out():
    import matplotlib

    with matplotlib.rc_context({"font.size": 30}):
        with style.style():
            assert matplotlib.rcParams["font.size"] == style.settings()["font.size"]
        assert matplotlib.rcParams["font.size"] == 30


def test_step_zero_stands_left_of_the_log_axis():
    axis = steps.StepAxis.of([0, 1, 10, 100])
    x = axis.x([0, 1, 10, 100])
    assert np.allclose(x[1:], [0, 1, 2])
    assert x[0] == pytest.approx(-axis.gap)
    parts = steps.parts(axis, pd.DataFrame({"step": [10, 0, 1]}))
    assert [list(p.rows["step"]) for p in parts] == [[0, 0], [1, 10]]


@pytest.mark.parametrize("series", [[0], [7], [0, 7], [1000, 143000], [5, 6, 7], [0, 1, 512, 1000]])
def test_any_series_has_ticks_and_init_only_if_untrained(series):
    with style.style():
        fig, axes = style.grid(1, 1, inches=3.25, row_height=1.5)
        steps.StepAxis.of(series).apply(axes[0][0])
        fig.canvas.draw()
        labels = [t.get_text() for t in axes[0][0].get_xticklabels()]
    assert len(labels) >= 1
    assert ("init" in labels) == (0 in series)


def test_ramp_falls_in_darkness_so_that_grey_print_keeps_the_order():
    from matplotlib.colors import to_rgb

    grey = [np.dot(to_rgb(c), (0.2126, 0.7152, 0.0722)) for c in style.ramp(6)]
    assert np.all(np.diff(grey) > 0.03)


def test_a_missing_value_leaves_a_cross_and_a_gap():
    rows = pd.DataFrame({"step": [1, 10, 100], "value": [1.0, np.nan, 3.0], "lo": np.nan, "hi": np.nan})
    with style.style():
        _, axes = style.grid(1, 1, inches=3.25, row_height=1.5)
        steps.line(axes[0][0], steps.StepAxis.of(rows["step"]), rows, color="k", marker="o")
    crosses = [line for line in axes[0][0].lines if line.get_marker() == "x"]
    assert [list(c.get_xdata()) for c in crosses] == [[1.0]]


def test_an_unknown_venue_is_refused():
    with pytest.raises(ConfigError, match="poster"):
        style.width({"venue": "poster"})
