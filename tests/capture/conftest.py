"""Cases by family: a tiny random model, its ids and targets, unpadded and padded."""

from collections.abc import Callable

import pytest
from families import CAUSAL, FAMILIES, MASKED, STACKS, Case, make


@pytest.fixture(params=STACKS)
def case(request: pytest.FixtureRequest) -> Case:
    """Every family that is one stack of blocks."""
    return make(request.param)


@pytest.fixture(params=CAUSAL)
def causal(request: pytest.FixtureRequest) -> Case:
    return make(request.param)


@pytest.fixture(params=MASKED)
def masked(request: pytest.FixtureRequest) -> Case:
    """Encoders that predict from their own last block."""
    return make(request.param)


@pytest.fixture(params=FAMILIES)
def every(request: pytest.FixtureRequest) -> Case:
    """Every family, encoder-decoders too."""
    return make(request.param)


@pytest.fixture
def make_case() -> Callable[[str], Case]:
    """A case by the name of its family."""
    return make
