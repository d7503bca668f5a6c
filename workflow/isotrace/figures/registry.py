"""Which figures exist: a decorator that registers a drawing function under the name the config uses.
Our own choice: one module a figure, found by name, so that editing one figure concerns no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrace.errors import ConfigError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Tables = Mapping[str, pd.DataFrame]
Options = Mapping[str, Any]
Draw = Callable[[Tables, Options], "tuple[Figure, pd.DataFrame]"]

_FIGURES: dict[str, Draw] = {}


def figure(name: str) -> Callable[[Draw], Draw]:
    """Register ``draw(tables, options) -> (Figure, drawn table)`` as the figure called ``name``.

    The module that holds it must carry the same name, ``isotrace/figures/{name}.py``.
    """

    def register(draw: Draw) -> Draw:
        _FIGURES[name] = draw
        return draw

    return register


def find(name: str) -> Draw:
    """The drawing function called ``name``; importing its module registers it.

    Raises ConfigError when no module ``isotrace/figures/{name}.py`` registers a figure of that name.
    """
    module = f"isotrace.figures.{name}"
    if name.isidentifier() and find_spec(module) is not None:
        import_module(module)
    if name not in _FIGURES:
        raise ConfigError(f"figures: no figure is called {name!r}; a figure is a module of isotrace/figures")
    return _FIGURES[name]
