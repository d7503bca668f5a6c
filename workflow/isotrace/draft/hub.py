"""A series on the hub: how its revisions are named, and what its config.json tells; the hub is asked twice or so.

Our choice: a family's naming is taken where it fits at least half of what the generic one finds.
"""

from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrace.checkpoints.labels import FAMILIES, Label, read_label
from isotrace.draft.facts import Facts, loss_of, read_json, span
from isotrace.errors import ConfigError, DataError
from isotrace.hub.client import Client

_STAGED = r"stage1-step(?P<step>\d+)-tokens(?P<tokens>\d+B)"
"""First stage of several: steps start again in each."""


def labels_of(names: Iterable[str]) -> tuple[str, list[Label]]:
    """The naming that fits these revisions best, and its labels in order; ConfigError where none has a step."""
    known = list(names)
    read = {family: [found for name in known if (found := read_label(name, family))] for family in FAMILIES}
    named = max((family for family in FAMILIES if family != "generic"), key=lambda family: len(read[family]))
    family = named if read[named] and 2 * len(read[named]) >= len(read["generic"]) else "generic"
    labels = read[family]
    if len({label.stage for label in labels}) > 1:
        family, labels = _STAGED, [found for name in known if (found := read_label(name, _STAGED))]
    if not labels:
        raise ConfigError(
            f"new: none of {len(known)} names ({', '.join(known[:6])}) is a checkpoint; give --labels, a regular "
            f"expression with the group `step`"
        )
    return family, sorted(labels, key=lambda label: label.order)


def read_hub(repo: str, labels: str | None, client: Client | None = None) -> Facts:
    """What a repo, or repos with ``{step}`` in their name, hold; `DataError` of one line where the hub says no."""
    asked = client or Client()
    series = "{step}" in repo  # of repos, one a checkpoint, each counts by its name
    try:
        refs = {} if series else asked.refs(repo)
        names = asked.repos(repo) if series else list(refs)
    except DataError as error:
        raise DataError(f"no folder {repo} here, and asked of the hub: {error}") from None
    family, found = (labels, _read(names, labels)) if labels else labels_of(names)
    last = found[-1].text
    config = _config(asked, last, asked.refs(last)["main"]) if series else _config(asked, repo, refs[last])
    steps = tuple(label.step for label in found)
    return Facts("hub", repo, steps, loss_of(config), labels=family, config=config, notes={"path": span(steps)})


def _read(names: Iterable[str], labels: str) -> list[Label]:
    found = [label for name in names if (label := read_label(name, labels))]
    if not found:
        raise ConfigError(f"new --labels: {labels!r} matches none of the names there")
    return sorted(found, key=lambda label: label.order)


def _config(client: Client, repo: str, commit: str) -> dict[str, Any]:
    if "config.json" not in client.files(repo, commit, None):
        return {}
    with TemporaryDirectory() as folder:
        return read_json(client.download(repo, commit, "config.json", Path(folder)))
