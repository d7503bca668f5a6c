"""Captions: numbers that are those of the tables, copies and gaps said only where there are any, LaTeX beside them."""

import numpy as np
import pandas as pd
import pytest
import synthetic
from matplotlib.figure import Figure

from isotrace.figures import cosine_over_training
from isotrace.paper import captions

MADE = {"models": ("decoder",), "buckets": ("b0", "b1"), "steps": (0, 4, 800)}


def told(geometry, options=None):
    """The caption of cosine_over_training, but for what a legend says."""
    drawn = cosine_over_training.data({"geometry": geometry}, options or {})
    return captions.caption("cosine_over_training", "Text.", {"geometry": geometry}, Figure(), drawn, options or {})


@pytest.fixture(scope="module")
def geometry():
    return synthetic.geometry(**MADE)


def test_n_is_the_least_and_most_tokens_of_what_is_drawn(geometry):
    uneven = geometry.assign(n_tokens=np.where(geometry["bucket"] == "b0", 1024, 300))
    assert "n = 300 to 1,024 evaluation tokens a site and bucket." in told(uneven)
    elsewhere = uneven.assign(n_tokens=np.where(uneven["site"] == "block.1", 9, uneven["n_tokens"]))
    assert "n = 300 to 1,024" in told(elsewhere, {"sites": ["embed", "final_norm"]})


def test_copies_broken_ones_and_gaps_are_said_where_there_are_any(geometry):
    assert "hollow" not in told(geometry)
    copied = geometry.assign(status=np.where(geometry["step"] == 4, "duplicate", "ok"))
    assert "hollow triangle" in told(copied)
    gone = geometry.copy()
    lost = (gone["step"] == 4) & (gone["site"] == "embed") & (gone["metric"] == "mean_cosine")
    gone.loc[lost, ["value", "lo", "hi"]] = np.nan
    gone.loc[lost, "reason"] = "12 rows, fewer than 32"
    assert "1 of 36 values are missing; cosine\\_over" not in told(gone)
    assert "1 of 36 values are missing; cosine_over_training.csv gives each its reason." in told(gone)


def test_several_runs_are_counted(geometry):
    two = geometry.assign(seed=1)
    both = pd.concat([geometry, two], ignore_index=True)
    assert "Model: decoder (2 runs)." in told(both)


def test_a_caption_is_written_as_rst_and_as_latex(tmp_path):
    captions.write(tmp_path / "f.rst", tmp_path / "f.tex", "**Is it?** 95 % of x_1.\n\nn = 3.\n")
    assert (tmp_path / "f.rst").read_text() == "**Is it?** 95 % of x_1.\n\nn = 3.\n"
    assert (tmp_path / "f.tex").read_text() == "\\textbf{Is it?} 95 \\% of x\\_1. n = 3.%\n"
