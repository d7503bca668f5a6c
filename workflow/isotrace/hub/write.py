"""Resolve a model of a study and write its series file."""

from typing import TYPE_CHECKING

from isotrace.errors import ConfigError
from isotrace.hub.client import Client
from isotrace.hub.resolve import resolve
from isotrace.hub.series_file import series_path
from isotrace.settings.sources import Hub
from isotrace.store import write_json

if TYPE_CHECKING:
    from isotrace.study import Study


def write_series(name: str, study: "Study", client: Client | None = None) -> str:
    """Ask the hub, write the file atomically, and return what to tell the user.

    ConfigError for a model that is not there or not on the hub; `DataError` of one line where the hub refuses.
    """
    model = study.models.get(name)
    if model is None or not isinstance(model.source, Hub):
        on_hub = sorted(n for n, m in study.models.items() if isinstance(m.source, Hub))
        raise ConfigError(f"resolve: {name!r} is no model with source hub; there are {on_hub or 'none'}")
    content, summary = resolve(name, model, model.source, client or Client(), downloads=study.execution.downloads)
    path = series_path(name, model.source)
    write_json(path, content)
    return f"{summary}\n{path}: written; commit it"
