"""Markup goes, words stay."""

import pytest

from isotrace.corpus.wikitext import plain_text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("'''Bold''' and ''italic''", "Bold and italic"),
        ("== History ==\nIt began.", "History\nIt began."),
        ("* one\n* two", "one\ntwo"),
        ("The [[moon|Moon]] and the [[sun]].", "The Moon and the sun."),
        ("A ({{lang|x}}) letter.", "A letter."),
        ("Cited.<ref name=a>A book</ref> Next.", "Cited. Next."),
        ("First.\n\n\n\n.\n\nSecond.", "First.\n\nSecond."),
        ("{| class=x\n|-\n| cell || other\n|}\nAfter.", "cell\n\nother\n\nAfter."),
    ],
)
def test_marks_are_removed(markup: str, text: str) -> None:
    assert plain_text(markup) == text


def test_plain_text_is_left_alone() -> None:
    text = "A line: with (brackets), a dash - and 3 < 4.\nAnother line."
    assert plain_text(text) == text
