"""LaTeX from plain text and from reStructuredText: the one place that escapes.
Our own choice; pandas' own to_latex leaves `_`, `&` and `%` as they are, which breaks or drops text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\ensuremath{\$}", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}", '"': "''",
}  # fmt: skip
SYMBOLS = {
    "±": r"\ensuremath{\pm}", "×": r"\ensuremath{\times}", "≤": r"\ensuremath{\leq}", "≥": r"\ensuremath{\geq}",
    "−": r"\ensuremath{-}", "→": r"\ensuremath{\to}", "√": r"\ensuremath{\surd}", "∞": r"\ensuremath{\infty}",
    "–": "--", "—": "---", "…": r"\ldots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "\u00a0": "~",
}  # fmt: skip


LIGATURES = ("''", "'\"", "\"'", "--", "``", "?`", "!`")
"""Pairs of characters of which TeX would make another one."""


@dataclass(frozen=True)
class Tex:
    """Text that is LaTeX already, and so is not escaped again."""

    text: str


Cell = str | Tex


def escape(text: str) -> str:
    """Plain text as LaTeX that shows it; letters that pdflatex cannot set are named by their code point."""
    after = zip(text, [*text[1:], ""], strict=False)
    return "".join(_character(c) + ("{}" if c + following in LIGATURES else "") for c, following in after)


def _character(c: str) -> str:
    if c in SPECIAL or c in SYMBOLS:
        return SPECIAL.get(c) or SYMBOLS[c]
    if ord(c) < 0x80:
        return c if c.isprintable() else " "
    letter = unicodedata.category(c).startswith("L") and ord(c) < 0x180
    return c if letter else rf"\texttt{{U+{ord(c):04X}}}"


def tex(cell: Cell) -> str:
    """A cell as LaTeX: escaped unless it is LaTeX already."""
    return cell.text if isinstance(cell, Tex) else escape(cell)


def from_rst(text: str) -> str:
    """A paragraph of reStructuredText (**strong**, *emphasis*, ``literal``) as LaTeX."""
    marks = re.compile(r"\*\*(.+?)\*\*|\*(.+?)\*|``(.+?)``|\\([*`|_\\])")
    commands = ("textbf", "emph", "texttt")
    out, end = [], 0
    flat = " ".join(text.split())
    for found in marks.finditer(flat):
        out.append(escape(flat[end : found.start()]))
        *styled, plain = found.groups()
        inner = [rf"\{c}{{{escape(s)}}}" for c, s in zip(commands, styled, strict=True) if s]
        out.append(inner[0] if inner else escape(plain))
        end = found.end()
    return "".join([*out, escape(flat[end:])])


def rst_escaped(text: str) -> str:
    """Plain text that reStructuredText shows as it is."""
    return re.sub(r"([*`|\\]|_(?=\W|$))", r"\\\1", text)
