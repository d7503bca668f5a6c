"""From a model's config to its series: which module knows which kind of source."""

from collections.abc import Callable
from typing import Any

from isotrace.errors import ConfigError
from isotrace.settings.inputs import Model
from isotrace.settings.sources import Stored
from isotrace.sources import gguf, hub, init, local, train, vectors
from isotrace.sources.series import Series

KINDS: dict[str, Callable[[str, Model, Any], Series]] = {
    "train": train.find,
    "local": local.find,
    "init": init.find,
    "gguf": gguf.find,
    "hub": hub.find,
    "vectors": vectors.find,
}


def find_series(name: str, model: Model) -> Series:
    """The series of one model; ConfigError, naming the key, where it cannot be."""
    series = KINDS[model.source.kind](name, model, model.source)
    if isinstance(model.source, Stored) and model.source.with_init:
        series = init.with_untrained(series)
    last = max(f.step for f in series.found)
    if series.total_steps < max(last, 1):
        raise ConfigError(f"models.{name}.total_steps: {series.total_steps} is below the largest stored step {last}")
    return series
