"""LaTeX: everything escaped once, numbers that read the same everywhere, tables that compile whatever a cell says."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.paper.numbers import interval, number, span, stars
from isotrace.paper.tabular import LONG, table
from isotrace.paper.tex import SPECIAL, Tex, escape, from_rst, rst_escaped, tex

COMMANDS = {escaped: plain for plain, escaped in SPECIAL.items()} | {"{}": ""}  # which parts what TeX would join
TOKEN = re.compile("|".join(re.escape(e) for e in sorted(COMMANDS, key=len, reverse=True)))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_escaping_is_undone_by_reading_it_back(text):
    assert TOKEN.sub(lambda found: COMMANDS[found.group()], escape(text)) == text


@given(st.text())
def test_no_character_keeps_a_meaning_for_tex(text):
    left = TOKEN.sub("", escape(text))
    left = re.sub(r"\\(ensuremath\{(\\[a-z]+|-)\}|ldots\{\}|texttt\{U\+[0-9A-F]{4,6}\})", "", left)
    assert not re.search(r"[\\{}$&%#_^<>|\"]", left)
    assert "\n" not in left


def test_what_is_latex_already_is_not_escaped_again():
    assert tex(Tex(r"\textbf{a_b}")) == r"\textbf{a_b}"
    assert tex("a_b & 5 %") == r"a\_b \& 5 \%"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (0.9204, "0.92"), (56.07, "56.1"), (12345.6, "12,346"), (math.nan, "n/a"), (0.0, "0"),
        (-0.5, r"\ensuremath{-}0.5"), (2.5e-7, r"\ensuremath{2.5\times10^{-7}}"),
    ],
)  # fmt: skip
def test_a_number_has_three_digits(value, said):
    assert number(value).text == said


def test_an_interval_stands_behind_its_value_or_not_at_all():
    assert span(2.0, 1.5, 3.0, marks="**").text == r"2\ensuremath{^{**}} [1.5, 3]"
    assert span(2.0, math.nan, 3.0).text == "2"
    assert interval(math.nan, math.nan).text == ""


@pytest.mark.parametrize(("p", "said"), [(0.0009, "***"), (0.01, "**"), (0.05, "*"), (0.051, ""), (math.nan, "")])
def test_stars_are_by_level(p, said):
    assert stars(p) == said


def test_a_table_has_booktabs_rules_and_escaped_cells():
    text = table(["a_b", "p"], [["x & y", number(0.5)], ["[odd]", "*"]], align="lr", notes=["50 %"])
    lines = text.splitlines()
    assert lines[:4] == [r"\begin{tabular}{lr}", r"\toprule", r"a\_b & p \\", r"\midrule"]
    assert lines[4:6] == [r"x \& y & 0.5 \\", r"{}[odd] & * \\"]
    assert lines[6:] == [r"\bottomrule", r"\multicolumn{2}{l}{\footnotesize 50 \%} \\", r"\end{tabular}"]


def test_a_long_table_breaks_over_pages_and_an_empty_one_says_so():
    long = table(["a"], [["x"]] * (LONG + 1), align="l")
    assert long.startswith(r"\begin{longtable}{l}")
    assert r"\endhead" in long
    assert "no rows" in table(["a", "b"], [], align=r"p{0.4\textwidth}r")


def test_restructured_text_becomes_latex():
    text = "**Is it so?** A *fixed* basis,\n50 % of ``b0_1``; a \\* and p_value."
    said = r"\textbf{Is it so?} A \emph{fixed} basis, 50 \% of \texttt{b0\_1}; a * and p\_value."
    assert from_rst(text) == said


@given(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1))
def test_escaped_text_survives_the_way_through_rst(text):
    assert from_rst(rst_escaped(text)) == escape(text)
