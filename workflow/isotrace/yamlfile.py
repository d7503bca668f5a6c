"""YAML files that people write: read into a mapping, and a key that is given twice is named with its lines.

YAML forbids repeated keys; PyYAML, and so Snakemake, silently keeps the last one.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from isotrace.errors import ConfigError


def read_mapping(path: str | Path, holds: str = "keys, e.g. `study: mine`") -> dict[str, Any]:
    """The content of a YAML file; ConfigError in one line where it is not there, no mapping, or has a key twice."""
    try:
        text = Path(path).read_text(encoding="utf-8")
        raw = yaml.safe_load(text)
        doubled = next(_doubled(yaml.compose(text, Loader=yaml.SafeLoader), "", set()), None)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file in {Path.cwd()}") from None
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML ({' '.join(str(error).split())})") from None
    if doubled:
        raise ConfigError(f"{path}: {doubled}; keep one of them")
    if not isinstance(raw, dict):
        raise ConfigError(f"{path}: a mapping of {holds} is expected")
    return raw


def check_repeated(paths: Iterable[str | Path]) -> None:
    """ConfigError for a key that one of these YAML files gives twice; files of another kind are passed over."""
    for path in paths:
        if Path(path).suffix in (".yaml", ".yml"):
            read_mapping(path)


def _doubled(node: yaml.Node | None, path: str, seen: set[int]) -> Iterator[str]:
    """Each key of a mapping below the node that stands there a second time, as `a.b: given twice, lines 3 and 7`."""
    if node is None or id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode):
        for number, item in enumerate(node.value):
            yield from _doubled(item, f"{path}{number}.", seen)
    if not isinstance(node, yaml.MappingNode):
        return
    lines: dict[tuple[str, str], int] = {}
    for name, value in node.value:
        key, line = (name.tag, str(name.value)), name.start_mark.line + 1
        # Several merges (<<) in one mapping are no repetition: each brings in another block.
        if key in lines and name.tag != "tag:yaml.org,2002:merge":
            yield f"{path}{name.value}: given twice, lines {lines[key]} and {line}"
        lines.setdefault(key, line)
        yield from _doubled(value, f"{path}{name.value}.", seen)
