"""The page of a study: every part is there, nothing is loaded from elsewhere, nothing of a table runs as HTML."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isotrace.report import caption, page
from isotrace.results import read_text

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

LOCK = {
    "model": "decoder",
    "provider": "local",
    "total_steps": 2000,
    "checkpoints": [
        {
            "id": "step1000",
            "step": 1000,
            "tokens_seen": None,
            "source": {"commit": None},
            "dtypes": {"BF16": 9, "F32": 2},
            "dtype": "BF16",
            "tensors_digest": "0123456789abcdef",
            "duplicate_of": None,
            "shared_tensors_with": {"step10": ["a", "b"]},
            "neighbour_distance": 0.51234,
            "neighbour_correlation": 0.04,
            "findings": [{"finding": "other_run", "severity": "warning", "detail": "<i>uncorrelated</i>"}],
        }
    ],
    "left_out": [{"name": "tmp-checkpoint-9", "reason": "half-written"}],
}


@pytest.fixture
def text(tmp_path: Path) -> str:
    figure = tmp_path / "early_late.png"
    figure.write_bytes(b"not looked at")
    return page(
        study="mine",
        claims=CLAIMS,
        sentences={"a_first": "The first & best.", "a_second": "The second."},
        audit=pd.DataFrame({"model": ["decoder"], "finding": ["duplicate"]}),
        locks=[LOCK],
        text=pd.DataFrame({"model": ["decoder"], "corpus": ["wiki"], "language": ["en"], "tokens": [512]}),
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
    assert all(
        part in text for part in ("decoder: 61", "A caption.", "duplicate", "<td>en</td><td>512</td>", "study: mine")
    )


def test_a_caption_loses_its_marks_and_line_breaks() -> None:
    assert caption("**Do they?** Yes,\n*always*.\n") == "Do they? Yes, always."


def test_every_checkpoint_of_a_series_is_shown_with_what_was_found(text: str) -> None:
    assert "decoder: 1 checkpoints, 2,000 steps" in text
    assert "<td>BF16 + F32</td><td>0123456789ab</td><td>step10 (2)</td><td>0.512 !</td><td>0.04</td>" in text
    assert "other_run: &lt;i&gt;uncorrelated" in text
    assert "<td>left_out: half-written</td>" in text
    assert "<th>commit</th>" not in text  # empty in every row


def test_what_a_model_reads_comes_from_its_tokens(tmp_path: Path) -> None:
    text = {"fr": {"language": "fr", "n_tokens": 30}, "wiki": {"language": None, "n_tokens": 90}}
    (tmp_path / "decoder.json").write_text(json.dumps({"attributes": {"text": text}}))
    rows = read_text([str(tmp_path / "decoder.json")]).to_dict("records")
    assert rows[0] == {"model": "decoder", "corpus": "fr", "language": "fr", "tokens": 30, "share": 0.25}
    assert (rows[1]["language"], rows[1]["share"]) == ("not given", 0.75)
