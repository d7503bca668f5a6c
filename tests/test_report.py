"""The page of a study: every part is there, nothing is loaded from elsewhere, nothing of a table runs as HTML."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isotrace.report import caption, page

CLAIMS = pd.DataFrame(
    {
        "claim": ["a_second", "a_first"],
        "source": ["isotrace", "tangent_paper"],
        "model": ["decoder", "<b>mine</b>"],
        "aggregate": ["mean", "max"],
        "expected": ["> 0", "> 10"],
        "estimate": [np.nan, 61.13],
        "lo": [np.nan, 57.7],
        "hi": [np.nan, 64.9],
        "verdict": ["undecided", "supported"],
        "note": ["no row", ""],
    }
)


@pytest.fixture
def text(tmp_path: Path) -> str:
    figure = tmp_path / "early_late.png"
    figure.write_bytes(b"not looked at")
    return page(
        study="mine",
        claims=CLAIMS,
        sentences={"a_first": "The first & best.", "a_second": "The second."},
        audit=pd.DataFrame({"model": ["decoder"], "finding": ["duplicate"]}),
        headline=["decoder: 61"],
        figures={figure: "A caption."},
        config="study: mine",
    )


def test_claims_stand_in_the_declared_order_with_estimate_and_verdict(text: str) -> None:
    assert text.index("The first &amp; best.") < text.index("The second.")
    assert "61.1 [57.7, 64.9]" in text
    assert "<td>n/a</td>" in text
    assert "<td class='supported'>supported</td>" in text


def test_the_page_is_self_contained_and_escaped(text: str) -> None:
    assert set(re.findall(r"(?:src|href)='?([a-z]+:)", text)) == {"data:"}
    assert "<script" not in text
    assert "<b>mine</b>" not in text
    assert all(part in text for part in ("decoder: 61", "A caption.", "duplicate", "study: mine"))


def test_a_caption_loses_its_marks_and_line_breaks() -> None:
    assert caption("**Do they?** Yes,\n*always*.\n") == "Do they? Yes, always."
