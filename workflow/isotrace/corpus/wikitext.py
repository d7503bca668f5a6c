"""Wikitext to plain text: gensim's filter, then the marks it leaves behind.

The filter is gensim's ``filter_wiki``; which leftovers are removed is our choice.
"""

import re

_LEFTOVERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"'{2,}"), ""),  # bold and italic
    (re.compile(r"^[ \t]*=+[ \t]*(.*?)[ \t]*=+[ \t]*$", re.MULTILINE), r"\1"),  # headings keep their words
    (re.compile(r"^[*#:;]+[ \t]*", re.MULTILINE), ""),  # list marks keep the item
    (re.compile(r"^[ \t]*[|!{}].*$", re.MULTILINE), ""),  # what is left of a table
    (re.compile(r"^[a-z-]{2,12}:[^\s].*$", re.MULTILINE), ""),  # links to other languages
    (re.compile(r"__[A-Z]+__"), ""),  # switches such as __TOC__
    (re.compile(r"\(\s*[,;]*\s*\)"), ""),  # brackets around a removed template
    (re.compile(r"^[^\w\n]+$", re.MULTILINE), ""),  # lines of punctuation alone
    (re.compile(r"[ \t\u00a0]+"), " "),
    (re.compile(r" ?\n ?"), "\n"),
    (re.compile(r"\n{3,}"), "\n\n"),
)


def plain_text(markup: str) -> str:
    """The readable text of one page: no templates, files, references, tables or marks."""
    from gensim.corpora.wikicorpus import filter_wiki

    text: str = filter_wiki(markup)
    for pattern, replacement in _LEFTOVERS:
        text = pattern.sub(replacement, text)
    return text.strip()
