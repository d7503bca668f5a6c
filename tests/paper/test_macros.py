"""Macros: names that TeX accepts, that differ, and that other models do not change; values that are the tables' own."""

import re

import pandas as pd
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from isotrace.main_numbers import main_numbers
from isotrace.paper.macros import claim_macros, macro_name, number_macros, render, unique

SLUG = st.text("abcXYZ0189.-", min_size=1, max_size=8)


@given(st.lists(st.tuples(SLUG, SLUG), min_size=1, max_size=6, unique=True))
def test_names_are_letters_and_no_two_are_the_same(stems):
    names = unique(stems)
    assert all(re.fullmatch("iso[A-Za-z]*", name) for name in names)
    assert len(set(names)) == len(names)


def test_a_name_depends_on_its_own_words():
    alone = unique([("pythia-160m", "energy_peak", "fixed")])
    assert alone == ["isoPythiaOneSixZeroMEnergyPeakFixed"]
    assert unique([("pythia-160m", "energy_peak", "fixed"), ("decoder", "energy_peak", "fixed")])[:1] == alone
    assert macro_name("a.b") == macro_name("a-b")
    both = unique([("a.b",), ("a-b",)])
    assert [name[:-5] for name in both] == ["isoAB", "isoAB"]
    assert unique([("a-b",), ("a.b",)]) == both[::-1]


@pytest.fixture(scope="module")
def tables():
    made = {"models": ("decoder",), "buckets": ("b0", "b1"), "steps": (0, 4, 64, 800)}
    return {
        "energy": synthetic.energy(**made), "isotropy": synthetic.isotropy(**made),
        "geometry": synthetic.geometry(**made),
    }  # fmt: skip


def test_values_are_those_of_the_headline(tables):
    numbers = main_numbers(tables)
    macros = {m.name: m.tex for m in number_macros(numbers)}
    for n in (n for n in numbers if n.key in ("energy_peak", "cosine_last")):
        name = macro_name(n.run, n.key, n.of if n.key == "energy_peak" else "")
        assert float(macros[name]) == pytest.approx(n.value, rel=5e-3)
        low, high = re.findall(r"[\d.]+", macros[f"{name}Interval"])
        assert (float(low), float(high)) == (pytest.approx(n.lo, rel=5e-3), pytest.approx(n.hi, rel=5e-3))
        assert macros[f"{name}Site"] == n.site.replace("_", r"\_")
    assert "isoDecoderIsotropyP" in macros
    assert "isoDecoderIsotropyPInterval" not in macros


def test_claims_have_their_estimate_and_verdict():
    row = {
        "claim": "peak_fixed",
        "model": "clm / mlm",
        "aggregate": "a_b > 3",
        "estimate": 60.8,
        "lo": 57.5,
        "hi": 64.5,
    }
    nan = {"claim": "drift", "model": "m", "aggregate": "", "estimate": float("nan"), "lo": float("nan")}
    claims = pd.DataFrame([row | {"verdict": "supported"}, nan | {"hi": float("nan"), "verdict": "undecided"}])
    macros = {m.name: m.tex for m in claim_macros(claims)}
    assert macros["isoClaimPeakFixedClmMlm"] == "60.8"
    assert macros["isoClaimPeakFixedClmMlmInterval"] == "[57.5, 64.5]"
    assert macros["isoClaimDriftM"] == "n/a"
    assert macros["isoClaimDriftMVerdict"] == "undecided"
    assert (macros["isoClaimsSupported"], macros["isoClaimsContradicted"], macros["isoClaims"]) == ("1", "0", "2")


def test_the_file_defines_each_once_and_comments_cannot_leak(tables):
    claims = pd.DataFrame(
        [{"claim": "c", "model": "m", "aggregate": "line\n\\input{evil}", "estimate": 1.0, "lo": 0.0, "hi": 2.0,
          "verdict": "supported"}]
    )  # fmt: skip
    text = render([*number_macros(main_numbers(tables)), *claim_macros(claims)], study="s")
    lines = text.splitlines()
    assert all(re.match(r"% |\\newcommand\{\\iso[A-Za-z]+\}\{.+\}$", line) for line in lines)
    defined = re.findall(r"\\newcommand\{\\(\w+)\}", text)
    assert len(set(defined)) == len(defined)
