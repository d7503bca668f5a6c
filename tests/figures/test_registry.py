"""Finding a figure by name."""

import pytest

from isotrace.errors import ConfigError
from isotrace.figures import registry


def test_a_figure_is_found_by_its_module():
    draw = registry.find("early_late")
    assert draw.__module__ == "isotrace.figures.early_late"


@pytest.mark.parametrize("name", ["pie_chart", "style", "no/such", "..errors"])
def test_an_unknown_name_is_a_config_error(name):
    with pytest.raises(ConfigError, match="no figure is called"):
        registry.find(name)
