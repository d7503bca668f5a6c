"""A page that holds every number, figure and table of a study, to be compiled, looked at and copied from.
Our own choice: the article class and packages of any TeX distribution; figures at the size they were drawn for."""

from __future__ import annotations

from collections.abc import Sequence

from isotrace.paper.macros import Macro
from isotrace.paper.tex import escape

TITLES = {
    "energy": "Gradient energy early and late in training.",
    "isotropy": "Isotropy of gradients, whole and without the tangent subspace.",
    "cosine": "Mean cosine of activations at every site.",
    "claims": "Claims declared before the run.",
    "tests": "Tests over runs.",
}
"""What each table shows, as its caption."""


def sample(*, study: str, figures: Sequence[str], tables: dict[str, str], macros: Sequence[Macro], width: float) -> str:
    """The page as LaTeX, to stand in results/paper; ``width`` is that of the figures in inches, ``tables`` by name."""
    across = max(width, 6.3)
    parts = [
        r"\documentclass[10pt]{article}",
        rf"\usepackage[letterpaper, textwidth={across}in, textheight=9.2in]{{geometry}}",
        r"\usepackage[utf8]{inputenc}",
        r"\usepackage{booktabs,longtable,graphicx}",
        r"\setlength{\tabcolsep}{4pt}\pagestyle{plain}",
        r"\input{macros}",
        r"\begin{document}",
        rf"\section*{{{escape(study)}}}",
        r"\subsection*{Numbers}\begin{raggedright}\scriptsize",
        *(rf"{escape(m.about)}: \{m.name}{{}} \texttt{{\string\{m.name}}}\par" for m in macros),
        r"\end{raggedright}\clearpage\subsection*{Figures}",
        *_paged([_figure(name) for name in figures]),
        r"\clearpage\subsection*{Tables}",
        *_paged([_table(name, text) for name, text in tables.items()]),
        r"\end{document}",
    ]
    return "\n".join([*parts, ""])


def _figure(name: str) -> str:
    """A figure with its caption; the short one keeps the long one out of a list of figures."""
    title = escape(name.replace("_", " "))
    return "\n".join([
        r"\begin{figure}[!ht]\centering",
        rf"\includegraphics{{../figures/{name}.pdf}}",
        rf"\caption[{title}]{{\input{{../figures/{name}.tex}}}}\label{{fig:{name}}}",
        r"\end{figure}",
    ])  # fmt: skip


def _table(name: str, text: str) -> str:
    shown = rf"{{\scriptsize\input{{tables/{name}.tex}}}}"
    if r"\begin{longtable}" in text:
        return "\n".join([rf"\paragraph{{{TITLES[name]}}}", shown])
    caption = rf"\caption{{{TITLES[name]}}}\label{{tab:{name}}}"
    return "\n".join([r"\begin{table}[!ht]\centering", caption, shown, r"\end{table}"])


def _paged(floats: Sequence[str]) -> list[str]:
    """Two floats a page, for TeX holds back only so many."""
    return [text + (r"\clearpage" if k % 2 else "") for k, text in enumerate(floats)]
