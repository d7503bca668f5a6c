"""How every figure looks and is saved: sizes, colours that survive grey print, a step axis, byte-equal files.
Our own choice; fonts are embedded as TrueType because conferences reject Type 3."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrace.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = Path(__file__).parent / "styles"
BASE = "isotrace"
"""The style of all figures; a venue's own is read after it."""
VENUE = "icml"
WIDE = 5.0
"""Inches from which a figure spans a page."""

INK = "#1a1a1a"
MUTED = "#6b6b6b"
BAND = "#d9d9d9"
LEGEND_LINE = 0.155  # inches
ACCENT = "#b2182b"
COOL = "#2166ac"

# Dark blue to light orange, falling monotonically in darkness so that the order survives grey print.
_RAMP = ("#11224e", "#234b85", "#3677a8", "#59a08f", "#93ad4d", "#e8b030")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def ramp(n: int) -> list[str]:
    """``n`` colours in order, dark first, ever lighter, so that colour-blind readers and grey print keep the order."""
    from matplotlib.colors import LinearSegmentedColormap, to_hex

    scale = LinearSegmentedColormap.from_list("isotrace", list(_RAMP))
    return [to_hex(scale(x)) for x in (np.linspace(0.0, 1.0, n) if n > 1 else [0.0] * n)]


def style_files(venue: str) -> list[Path]:
    """The style files of a venue, later ones over earlier ones. ConfigError for a venue that has none."""
    known = sorted(path.stem for path in STYLES.glob("*.mplstyle") if path.stem != BASE)
    if venue not in known:
        raise ConfigError(f"figures.venue: {venue!r} is not one of {', '.join(known)}")
    return [STYLES / f"{name}.mplstyle" for name in (BASE, venue)]


@cache
def settings(venue: str = VENUE) -> Mapping[str, Any]:
    """The rc settings of a venue."""
    from matplotlib import rc_params_from_file

    read = [rc_params_from_file(file, use_default_template=False) for file in style_files(venue)]
    return {key: value for settings in read for key, value in settings.items()}


def _of(options: Mapping[str, Any]) -> Mapping[str, Any]:
    return settings(str(options.get("venue", VENUE)))


def width(options: Mapping[str, Any]) -> float:
    """The figure's width in inches at ``options["venue"]`` (icml when absent)."""
    return float(_of(options)["figure.figsize"][0])


def wide(options: Mapping[str, Any]) -> bool:
    """Whether the figure spans a page, so that panels stand side by side."""
    return width(options) > WIDE


@contextmanager
def style(options: Mapping[str, Any] | None = None) -> Iterator[None]:
    """The rc settings of every figure; nothing of the caller's own settings gets in."""
    import matplotlib

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for name, value in _of(options or {}).items():
            matplotlib.rcParams[name] = value  # type: ignore[index]
        yield


def grid(rows: int, columns: int, *, inches: float, row_height: float) -> tuple[Figure, Any]:
    """A figure of ``rows`` x ``columns`` panels, ``inches`` wide and ``row_height`` inches a row."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    fig = Figure(figsize=(inches, rows * row_height), layout="constrained")
    FigureCanvasAgg(fig)
    return fig, fig.subplots(rows, columns, squeeze=False)


def short(number: float) -> str:
    """A number as a tick label: 0.3, 1, 100, 1k, 100k, 1M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:g}{unit}"
    return f"{number:g}"


def legend(fig: Figure, groups: Sequence[Sequence[Any]]) -> None:
    """The figure's legend below the panels: each group starts a new line, lines break where the width ends.

    The figure grows by the legend's height, so that panels keep their size.
    """
    lines: list[list[Any]] = []
    for group in groups:
        used = np.inf
        for handle in group:
            wide = 0.42 + 0.054 * len(str(handle.get_label()))
            if used + wide > fig.get_figwidth():
                lines.append([])
                used = 0.0
            lines[-1].append(handle)
            used += wide
    height = LEGEND_LINE * len(lines) + 0.04
    panels = fig.get_figheight()
    fig.set_figheight(panels + height)
    engine = fig.get_layout_engine()
    if engine is not None:
        engine.set(rect=(0, height / (panels + height), 1, panels / (panels + height)))  # type: ignore[call-arg]
    for k, handles in enumerate(lines):
        bottom = LEGEND_LINE * (len(lines) - 1 - k) / (panels + height)
        fig.legend(
            handles=handles, loc="lower left", bbox_to_anchor=(0.0, bottom), ncols=len(handles), borderaxespad=0,
            borderpad=0.2,
        ).set_in_layout(False)  # fmt: skip


def interval_name(drawn: pd.DataFrame, options: Mapping[str, Any]) -> str:
    """What the shading is: an interval over sequences within one run, the range over seeds, or both."""
    within = f"{100 * float(options.get('confidence', 0.95)):g} % interval over sequences"
    kinds = set(drawn["interval"]) if "interval" in drawn else set()
    if "range over seeds" not in kinds:
        return within
    return "range over seeds" if "within the run" not in kinds else f"range over seeds ({within} for single runs)"


def bucket_kind(options: Mapping[str, Any]) -> str:
    """What buckets are made of: tokens by how often they occur, or patches and frames by their energy."""
    return str(options.get("bucketed", "token"))


def bucket_names(buckets: Sequence[str], options: Mapping[str, Any]) -> dict[str, str]:
    """What a legend calls the buckets; the first and last say what they hold, where all models agree on it."""
    parts = [b for b in buckets if b != "all"]
    said = {"token": (" (most frequent tokens)", " (rarest)"), "energy": (" (least energy)", " (most)")}
    first, last = said.get(bucket_kind(options), ("", ""))
    ends = {parts[0]: first, parts[-1]: last} if len(parts) > 1 else {}
    return {"all": "all tokens"} | {b: f"{b}{ends.get(b, '')}" for b in parts}


def bucket_handles(buckets: Sequence[str], colours: Mapping[str, str], options: Mapping[str, Any]) -> list[Any]:
    """Legend entries of the buckets, named as in ``bucket_names``."""
    from matplotlib.lines import Line2D

    names = bucket_names(buckets, options)
    return [Line2D([], [], color=colours[b], marker=marker(k), label=names[b]) for k, b in enumerate(buckets)]


def gone_handles(values: pd.Series) -> list[Any]:
    """The legend entry of the cross that stands for a missing value, if there is one."""
    from matplotlib.lines import Line2D

    label = "no value (the reason is in the CSV)"
    return [Line2D([], [], color=INK, ls="none", marker="x", ms=3, mew=0.7, label=label)] if values.isna().any() else []


def marker(k: int) -> str:
    """The marker of the ``k``-th series; they repeat after seven."""
    return MARKERS[k % len(MARKERS)]


def letter(ax: Axes, index: int, text: str) -> None:
    """A bold panel letter and what the panel shows, above it on the left."""
    name = chr(ord("a") + index) if index < 26 else str(index + 1)
    ax.set_title(rf"$\bf{{{name}}}$  {_plain(text)}")


def _plain(text: str) -> str:
    """Text in which a dollar sign starts no formula."""
    return text.replace("$", r"\$")


def absent(ax: Axes, text: str) -> None:
    """Say in the panel why nothing is drawn."""
    said = ax.text(0.5, 0.5, f"n/a\n{_plain(text)}", transform=ax.transAxes, ha="center", va="center", color=MUTED)
    said.set_wrap(True)
    said.set_in_layout(False)  # a long reason must not take the panels' width


def decades(ax: Axes, *, which: str = "y") -> None:
    """A logarithmic axis (``which``: x or y) whose ticks read 0.3, 1, 3, 10, 30 instead of powers."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    low, high = ax.get_ylim() if which == "y" else ax.get_xlim()
    (ax.set_yscale if which == "y" else ax.set_xscale)("log")
    axis = ax.yaxis if which == "y" else ax.xaxis
    per = (1, 2, 5) if high / low < 30 else (1, 3) if high / low < 2000 else (1,)
    span = range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)
    axis.set_major_locator(FixedLocator([m * 10.0**d for d in span for m in per]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_formatter(NullFormatter())
    axis.set_view_interval(low, high, ignore=True)


def save(fig: Figure, drawn: pd.DataFrame, *, pdf: str | Path, png: str | Path, csv: str | Path) -> None:
    """Write the figure as PDF (TrueType fonts) and PNG (300 dpi), and what it draws as CSV.

    Each file appears whole or not at all; the bytes depend on the drawing and on the library versions only.
    """
    with style():
        _settle(fig)
        _replace(pdf, lambda path: fig.savefig(path, format="pdf", metadata=_PDF_METADATA))
        _replace(png, lambda path: fig.savefig(path, format="png", dpi=300, metadata={"Software": None}))
    _replace(csv, lambda path: drawn.to_csv(path, index=False, lineterminator="\n"))


def _settle(fig: Figure) -> None:
    """Lay the figure out once and keep that: the solver's sums differ between runs, in a PDF's tenth decimal."""
    fig.set_dpi(300)
    fig.draw_without_rendering()
    fig.set_layout_engine("none")
    for ax in fig.axes:
        ax.set_position(tuple(round(edge, 6) for edge in ax.get_position(original=True).bounds))


# A date would change the file at every run.
_PDF_METADATA = {"Creator": "isotrace", "Producer": "isotrace", "CreationDate": None, "ModDate": None}


def _replace(path: str | Path, write: Any) -> None:
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.with_name(f".{target.name}.part{os.getpid()}")
    try:
        write(partial)
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)
