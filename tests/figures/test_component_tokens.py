"""Tokens at the ends of components: which bars, and labels that any font can draw."""

import pytest
import synthetic

from isotrace.figures import style
from isotrace.figures.component_tokens import data, draw, label


def test_bars_are_the_first_components_and_tokens_of_the_last_block():
    drawn = data({"components": synthetic.components()}, {})
    assert set(drawn["site"]) == {"block.3"}
    assert sorted(set(drawn["component"])) == [1, 2, 3, 4]
    assert len(drawn) == 2 * 4 * 2 * 5
    ends = drawn.query("model == 'decoder' and component == 1")
    assert ends["score"].tolist() == pytest.approx([2.4, 2.3, 2.2, 2.1, 2.0, -2.4, -2.3, -2.2, -2.1, -2.0])
    assert set(data({"components": synthetic.components()}, {"sites": ["embed"]})["site"]) == {"embed"}


def test_a_panel_reads_from_the_one_end_to_the_other():
    fig, _ = draw({"components": synthetic.components(("m",))}, {})
    with style.style():
        fig.draw_without_rendering()
    bars = [bar for bar in fig.axes[0].patches if bar.get_width() != 0]
    widths = [bar.get_width() for bar in sorted(bars, key=lambda bar: -bar.get_y())]
    assert widths == sorted(widths, reverse=True)
    assert len(fig.axes[0].get_yticklabels()) == 10


@pytest.mark.parametrize(
    ("token", "shown"),
    [
        (" the", "\u2423the"),
        ("", "id 7"),
        ("\u732b", "\\u732b"),
        ("$x$", "$x$"),
        ("a" * 20, "a" * 13 + "\u2026"),
        ("\\n", "\\n"),
    ],
)
def test_labels(token, shown):
    assert label(token, 7) == shown
