"""Tables of a paper: a row a thing measured, its numbers those of the figures, stars where p-values are planted."""

import re

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figures import early_late
from isotrace.paper.numbers import STARS, span
from isotrace.paper.study_tables import claims, cosine, energy, isotropy, over_runs
from isotrace.paper.tex import escape

MADE = {"models": ("decoder",), "buckets": ("b0", "b10", "b2"), "steps": (0, 4, 64, 800)}


def rows_of(text):
    """The cells of the body, as LaTeX."""
    body = text.partition(r"\midrule")[2].partition(r"\bottomrule")[0]
    return [line.removesuffix(r" \\").split(" & ") for line in body.strip().splitlines()]


@pytest.fixture(scope="module")
def tables():
    return {
        "energy": synthetic.energy(**MADE), "isotropy": synthetic.isotropy(**MADE),
        "geometry": synthetic.geometry(**MADE),
    }  # fmt: skip


def test_energy_has_the_ratios_of_figure_early_late(tables):
    rows = rows_of(energy(tables, {}))
    assert [row[:2] for row in rows] == [["decoder", escape(site)] for site in synthetic.SITES]
    drawn = early_late.data(tables, {}).query("site == 'block.0' and basis == 'moving' and phase == 'late'").iloc[0]
    assert rows[1][5] == span(drawn["ratio"], drawn["lo"], drawn["hi"]).text


def test_isotropy_has_every_bucket_at_the_last_step(tables):
    rows = rows_of(isotropy(tables, {}))
    assert [(row[1], row[2]) for row in rows] == [("b0", "800"), ("b2", "800"), ("b10", "800")]
    last = tables["isotropy"].query("bucket == 'b2' and step == 800 and estimator == 'corrected'").iloc[0]
    assert float(rows[1][4]) == pytest.approx(last["score_without_tangent"], rel=5e-3)


def test_cosine_finds_the_planted_peak(tables):
    rows = rows_of(cosine(tables, {}))
    assert len(rows) == len(synthetic.SITES)
    assert {row[4] for row in rows if row[1] != "embed"} == {"4"}
    assert "untrained & peak & at step & step 800" in cosine(tables, {})


def test_claims_keep_the_declared_order_and_escape_once():
    made = {"estimate": 2.0, "lo": 1.0, "hi": 3.0, "p_adjusted": np.nan, "expected": "> 1.5", "verdict": "undecided"}
    frame = pd.DataFrame([made | {"claim": name, "model": "a_b"} for name in ("later", "first")])
    text = claims({"claims": frame}, {"first": "50 % & more", "later": "then"})
    assert text.index(r"50 \% \& more & a\_b & 2 [1, 3] &") < text.index(r"then & a\_b & 2 [1, 3] &")
    assert text.count(r"\%") == 1
    assert r"\textgreater{} 1.5" in text
    assert "take five runs" in text


def test_tests_over_runs_are_starred_by_adjusted_p_and_others_left_out():
    row = {
        "family": "f", "test": "trend", "unit": "run", "model": "m", "site": "embed", "bucket": "", "statistic": "tau",
        "effect": 0.9, "lo": 0.5, "hi": 1.0, "n": 6, "p_value": 1e-5,
    }  # fmt: skip
    frame = pd.DataFrame([row | {"p_adjusted": 0.004}, row | {"unit": "sequence", "p_adjusted": np.nan}])
    text = over_runs({"dynamics": frame})
    assert len(rows_of(text)) == 1
    assert r"0.9\ensuremath{^{**}} [0.5, 1]" in text
    assert escape(STARS) in text
    none = over_runs({"dynamics": frame.assign(p_adjusted=np.nan)})
    assert "no rows" in none
    assert not re.search(r"\\ensuremath\{\^", none)
