"""Copies and broken checkpoints are hollow marks beside the lines, named in the legend and in what is drawn."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import synthetic
from matplotlib.figure import Figure

from isotrace.figures import marks, registry, style

NAMES = (
    "energy_over_training", "isotropy_ablation", "cosine_over_training", "frequency_geometry",
    "attention_over_training", "attention_sinks",
)  # fmt: skip
STEPS = (0, 4, 16, 64, 256, 512, 800)
PLACES = (
    "site", "quantity", "basis", "method", "null_space", "metric", "estimator", "kind", "of", "query_bucket",
    "key_bucket", "column",
)  # fmt: skip
COPIED, BROKEN = 16, 64


def marked(frame: pd.DataFrame) -> pd.DataFrame:
    """Step 16 with its own values as a copy, step 64 without results; as the tables hold a broken checkpoint."""
    status = frame["step"].map({COPIED: "duplicate", BROKEN: "broken"}).fillna("ok")
    kept, lost = frame.assign(status=status)[frame["step"] != BROKEN], frame[frame["step"] == BROKEN]
    keys = [
        c for c in ("study", "model", "seed", "checkpoint", "step", "tokens_seen", "progress", "phase") if c in frame
    ]
    stone = lost[keys].drop_duplicates().assign(status="broken", reason="truncated weights")
    texts = dict.fromkeys([c for c in PLACES if c in frame], "")
    texts |= {"bucket": ""} if "bucket" in frame else {}
    whole = pd.concat([kept, stone.assign(**texts)], ignore_index=True)
    return whole.astype({"layer": "Int64"})


@pytest.fixture(scope="module")
def tables() -> dict[str, pd.DataFrame]:
    whole = synthetic.all_tables(models=("decoder",), buckets=("b0", "b1"), steps=STEPS)
    return {name: marked(frame) for name, frame in whole.items()}


def points(fig: Figure, look: dict[str, Any]) -> list[tuple[float, float]]:
    """Where marks of this look are drawn; sizes tell them from hollow points of lines."""
    return [
        (float(x), float(y))
        for ax in fig.axes
        for line in ax.lines
        if (line.get_marker(), line.get_markersize()) == (look["marker"], look["ms"])
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]


def legend(fig: Figure) -> set[str]:
    return {text.get_text() for one in fig.legends for text in one.get_texts()}


@pytest.mark.parametrize("name", NAMES)
def test_marks_stand_at_their_steps_and_no_line_passes_through_them(name, tables):
    fig, drawn = registry.find(name)(tables, {})
    value = next(c for c in ("ratio", "score", "spearman", "value") if c in drawn)
    by_step = drawn[drawn["step"].isin([COPIED, BROKEN])]
    assert set(zip(by_step["step"], by_step["status"], strict=True)) == {(COPIED, "duplicate"), (BROKEN, "broken")}
    copies, broken = points(fig, marks.COPY), points(fig, marks.BROKEN)
    assert {x for x, _ in copies} == {np.log10(COPIED)}
    assert set(broken) == {(np.log10(BROKEN), 0.0)}
    assert {round(float(v), 9) for v in by_step[value].dropna()} <= {round(y, 9) for _, y in copies}
    joined = [
        line for ax in fig.axes for line in ax.lines if line.get_linestyle() != "None" and len(line.get_xdata()) > 2
    ]
    assert joined
    assert not any(np.isin([np.log10(COPIED), np.log10(BROKEN)], line.get_xdata()).any() for line in joined)
    assert set(marks.LABELS.values()) <= legend(fig)
    assert "no value (the reason is in the CSV)" not in legend(fig)
    with style.style():
        fig.draw_without_rendering()


@pytest.mark.parametrize("name", NAMES)
def test_without_marks_nothing_is_drawn_or_named(name):
    whole = synthetic.all_tables(models=("decoder",), buckets=("b0", "b1"), steps=STEPS)
    fig, drawn = registry.find(name)(whole, {})
    assert set(drawn["status"]) == {"ok"}
    assert points(fig, marks.COPY) == points(fig, marks.BROKEN) == []
    assert not set(marks.LABELS.values()) & legend(fig)


@pytest.mark.parametrize("name", ["energy_over_training", "cosine_over_training"])
def test_a_copy_is_not_averaged_with_another_run_of_its_step(name):
    """Two runs of one model, the second one's step 16 a copy: its values stay apart, the first one's as they were."""
    stage, value = {"energy_over_training": ("energy", "ratio"), "cosine_over_training": ("geometry", "value")}[name]
    first = synthetic.all_tables(models=("decoder",), buckets=("b0",), steps=STEPS)[stage]
    second = first.assign(seed=1, status=first["step"].map({COPIED: "duplicate"}).fillna("ok"))
    module = __import__(f"isotrace.figures.{name}", fromlist=["data"])
    both = module.data({stage: pd.concat([first.assign(status="ok"), second], ignore_index=True)}, {})
    alone = module.data({stage: first}, {})
    here, expected = both[both["status"] == "ok"], alone
    pd.testing.assert_series_equal(here[value].reset_index(drop=True), expected[value].reset_index(drop=True))
    assert set(here.loc[here["step"] == COPIED, "seeds"]) == {1}
    assert set(here.loc[here["step"] != COPIED, "seeds"]) == {2}


def test_early_and_late_means_leave_copies_out(tables):
    drawn = registry.find("early_late")(tables, {})[1]
    plain = synthetic.energy(models=("decoder",), buckets=("b0", "b1"), steps=STEPS)
    without = registry.find("early_late")({"energy": plain[~plain["step"].isin([COPIED, BROKEN])]}, {})[1]
    pd.testing.assert_frame_equal(drawn, without, check_dtype=False)
