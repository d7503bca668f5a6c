"""What a plan expects of a family is what capture finds in its models: sites, blocks, linear maps."""

import pytest
from families import FAMILIES

from isotrace.capture.maps import find_maps
from isotrace.capture.sites import choose, find_sites
from isotrace.planning.shapes import shape_of


@pytest.mark.parametrize("family", FAMILIES)
def test_sites_and_maps_are_those_of_the_loaded_model(family, make_case):
    model = make_case(family).model
    shape = shape_of(model.config.to_dict())
    every = find_sites(model)
    chosen = choose(list(every), None)
    blocks = [name for name in chosen if name.startswith("block.")]
    maps = find_maps(model, every, blocks)
    assert (shape.sites(None), shape.blocks(None)) == (len(chosen), len(blocks))
    assert (shape.maps, shape.reads) == (len(maps.modules) / len(blocks), len(set(maps.reads.values())) / len(blocks))
