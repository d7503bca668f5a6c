"""What a paper asks of every figure: units, named uncertainty, told apart in grey, small files, same bytes."""

import itertools
import re
import struct
from typing import get_args

import numpy as np
import pandas as pd
import pytest
import synthetic

from isotrace.figure_tables import FIGURE_TABLES
from isotrace.figures import registry, style
from isotrace.paper.captions import RANKED, SPREAD, caption
from isotrace.paper.tex import rst_escaped
from isotrace.settings.analysis import Venue

UNIT = re.compile(r"\(.+\)|\||-1| - ", re.DOTALL)
"""What says a unit: in brackets, or a formula from which it follows."""
NAMED = re.compile(r"site|block|component|decoder|encoder", re.DOTALL)
"""Labels of axes whose ticks are names."""
GREY = (0.2126, 0.7152, 0.0722)
APART = 0.05


def toy():
    rows = itertools.product(
        ("attention", "residual", "norm", "mlp"), (0.0, 0.5), ("within", "across"), (0.0, 1.0, 4.0)
    )
    made = pd.DataFrame(rows, columns=["component", "input_cosine", "pairs", "qk_scale"])
    value = made["input_cosine"] + 0.1
    expected = value.where(made["qk_scale"] == 0)
    reason = expected.isna().map({True: "no theory", False: ""})
    return made.assign(cosine=value, lo=value - 0.05, hi=value + 0.05, expected=expected, n_seeds=5, reason=reason)


@pytest.fixture(scope="module")
def tables():
    points = synthetic.frequency_points(models=("decoder",))
    made = synthetic.all_tables(models=("decoder",), buckets=("b0", "b1", "b2"), steps=(0, 4, 800))
    return made | {"toy": toy(), "frequency_points": points}


@pytest.fixture(scope="module", params=sorted(FIGURE_TABLES))
def figure(request, tables):
    return request.param, *registry.find(request.param)(tables, {"venue": "icml"})


def test_a_module_stands_behind_every_name_and_no_other():
    modules = {path.stem for path in style.STYLES.parent.glob("*.py")}
    shared = {"__init__", "style", "registry", "marks", "steps", "frames", "panels"}
    assert modules - shared == set(FIGURE_TABLES)


def test_no_title_stands_inside(figure):
    _, fig, _ = figure
    assert fig.get_suptitle() == ""
    titles = [ax.get_title(loc) for ax in fig.axes for loc in ("center", "right")]
    assert not any(titles)
    assert all(ax.get_title("left").startswith(r"$\bf{") for ax in fig.axes if ax.get_visible() and ax.axison)


def test_axes_say_their_unit(figure):
    _, fig, _ = figure
    shown = [ax for ax in fig.axes if ax.get_visible() and ax.axison]
    labels = {axis.get_label().get_text() for ax in shown for axis in (ax.xaxis, ax.yaxis)} - {""}
    assert [label for label in labels if not UNIT.search(label) and not NAMED.search(label)] == []
    assert any(ax.get_xlabel() for ax in shown)


def legend_of(fig):
    return [(h, t.get_text()) for g in fig.legends for h, t in zip(g.legend_handles, g.get_texts(), strict=True)]


def test_uncertainty_is_drawn_and_named(figure):
    name, fig, _ = figure
    assert any(SPREAD.search(text) for _, text in legend_of(fig)), name
    assert any(ax.collections for ax in fig.axes)


def look(handle):
    """What tells an entry apart without its hue: how light it is, and marker, fill and dashes of a line."""
    from matplotlib.colors import to_rgb

    colour = handle.get_color() if hasattr(handle, "get_color") else handle.get_facecolor()
    light = float(np.dot(to_rgb(colour), GREY))
    if not hasattr(handle, "get_marker"):
        return light, ("patch", handle.get_alpha())
    hollow = to_rgb(handle.get_markerfacecolor()) == (1.0, 1.0, 1.0) or handle.get_markerfacecolor() == "none"
    dashes = (handle.get_linestyle(), str(getattr(handle, "_unscaled_dash_pattern", "")))
    return light, ("line", handle.get_marker(), hollow, *dashes, handle.get_linewidth(), handle.get_markersize())


def test_entries_of_the_legend_are_told_apart_in_grey(figure):
    name, fig, _ = figure
    # Lines in ink explain a way of drawing (dashes, fill) that series of every colour share.
    series = [(h, t) for h, t in legend_of(fig) if not (hasattr(h, "get_marker") and h.get_color() == style.INK)]
    for (one, said), (other, also) in itertools.combinations(series, 2):
        (light, shape), (lighter, form) = look(one), look(other)
        assert shape != form or abs(light - lighter) > APART, f"{name}: {said} looks like {also}"


VENUES = {"icml": 6.75, "icml-column": 3.25, "neurips": 5.5, "acl": 6.3, "acl-column": 3.03}


def test_the_venues_of_the_config_are_the_style_files_and_their_widths():
    files = {path.stem for path in style.STYLES.glob("*.mplstyle")} - {style.BASE}
    assert set(get_args(Venue)) == files == set(VENUES)
    assert {venue: style.width({"venue": venue}) for venue in VENUES} == VENUES


def test_a_figure_is_as_wide_as_its_venue(tables):
    fig, _ = registry.find("toy")(tables, {"venue": "acl-column"})
    assert fig.get_figwidth() == VENUES["acl-column"]


@pytest.mark.slow
def test_files_are_small_embed_truetype_and_are_the_same_again(tables, tmp_path):
    for name in FIGURE_TABLES:
        files = []
        for again in ("a", "b"):
            fig, drawn = registry.find(name)(tables, {"venue": "acl-column"})
            paths = {kind: tmp_path / again / f"{name}.{kind}" for kind in ("pdf", "png", "csv")}
            style.save(fig, drawn, **paths)
            files.append({kind: path.read_bytes() for kind, path in paths.items()})
        assert files[0] == files[1], name
        pdf, png = files[0]["pdf"], files[0]["png"]
        assert len(pdf) < 500_000
        assert b"/Type3" not in pdf
        assert pdf.count(b"/FontFile2") == len(re.findall(rb"/Type /FontDescriptor", pdf)) > 0
        at = png.index(b"pHYs") + 4
        assert struct.unpack(">IIB", png[at : at + 9]) == (11811, 11811, 1)  # 300 dots an inch, in dots a metre


@pytest.mark.slow
def test_a_large_study_still_makes_small_files(tmp_path):
    models = tuple(f"model{k}" for k in range(6))
    buckets = tuple(f"b{k}" for k in range(6))
    many = tuple(int(s) for s in np.unique(np.geomspace(1, 143_000, 60).astype(int)))
    energy = synthetic.energy(models, buckets, (0, *many))
    fig, drawn = registry.find("energy_over_training")({"energy": energy}, {})
    style.save(fig, drawn, pdf=tmp_path / "f.pdf", png=tmp_path / "f.png", csv=tmp_path / "f.csv")
    assert (tmp_path / "f.pdf").stat().st_size < 500_000


def test_the_caption_says_n_of_whom_and_what_the_shading_is(figure, tables):
    name, fig, drawn = figure
    read = {t: tables[t] for t in FIGURE_TABLES[name] if t in tables}
    told = caption(name, "**What?** This.", read, fig, drawn, {})
    assert told.startswith("**What?** This.\n\n")
    facts = told.partition("\n\n")[2]
    assert re.search(r"n = [\d,]+", facts), facts
    assert "Uncertainty: " in facts
    for _, text in legend_of(fig):
        assert not SPREAD.search(text) or rst_escaped(text) in facts
    assert name == "toy" or "decoder (1 run)" in facts
    assert ("Rank 8." in facts) == (name in RANKED)
    assert "missing" not in facts
