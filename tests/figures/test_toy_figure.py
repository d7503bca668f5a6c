"""The toy figure draws the table as it is, and refuses to be drawn without it."""

import pytest

from isotrace.errors import DataError
from isotrace.figures import registry, style
from isotrace.geometry.toy import toy_table

SPEC = {"width": 8, "heads": 2, "tokens": 4, "sequences": 2, "seeds": 2, "seed": 0, "confidence": 0.95}


@pytest.mark.parametrize("venue", ["icml", "icml-column"])
def test_every_row_is_drawn_and_known_cosines_are_ringed(venue):
    table = toy_table({**SPEC, "input_cosines": [0.0, 0.5], "qk_scales": [0.0, 4.0]})
    fig, drawn = registry.find("toy")({"toy": table}, {"venue": venue})
    with style.style():
        fig.draw_without_rendering()
    assert len(drawn) == len(table)
    rings = [line.get_xydata() for line in fig.axes[0].lines if line.get_markersize() == 6]
    assert sum(map(len, rings)) == (drawn.query("component == 'attention'")["expected"].notna()).sum() == 4


def test_without_its_table_there_is_no_figure():
    with pytest.raises(DataError, match="table 'toy' is needed"):
        registry.find("toy")({}, {})
