"""`isotrace resolve`: the labels of a series as commits, with sizes and hashes of the files, asked of the hub once.

Nothing of the weights is downloaded; the answer is written to the series file, which is meant to be committed.
"""

import json
import re
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrace.checkpoints.labels import Label, read_label
from isotrace.errors import DataError
from isotrace.hub.client import Client
from isotrace.hub.own_code import pinned_code
from isotrace.settings.inputs import Model
from isotrace.settings.media import MEDIA
from isotrace.settings.sources import Hub
from isotrace.storage.shared import path_in_repo

SAFE = (("model.safetensors", "model-*-of-*.safetensors"), "model.safetensors.index.json")
PICKLED = (("pytorch_model.bin", "pytorch_model-*-of-*.bin"), "pytorch_model.bin.index.json")
TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "*.model",
)
PROCESSOR = ("preprocessor_config.json",)
"""What images and audio have for a tokenizer; characters need nothing."""

Files = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Place:
    """Where one label's checkpoint is."""

    label: Label
    repo: str
    revision: str
    commit: str


def resolve(name: str, model: Model, source: Hub, client: Client, *, downloads: int = 4) -> tuple[dict[str, Any], str]:
    """The content of the series file, and what to tell the user.

    downloads: requests at a time. `DataError` of one line where the hub does not answer or holds no such labels.
    """
    places, ignored = _places(source, client)
    stages = sorted({place.label.stage for place in places if place.label.stage is not None})
    if len(stages) > 1:
        raise DataError(
            f"models.{name}.source.revisions.labels: stages {stages} among the {len(places)} labels, and steps start "
            f"again in each; write a pattern of one, as stage{stages[0]}-step(?P<step>\\d+)-tokens(?P<tokens>\\d+B)"
        )
    with ThreadPoolExecutor(downloads) as pool:
        trees = list(pool.map(lambda place: client.files(place.repo, place.commit, source.subfolder), places))
    checkpoints = [
        _entry(place, source.subfolder, tree, model.tokens_per_step) for place, tree in zip(places, trees, strict=True)
    ]
    content = {
        "model": name,
        "repo": source.repo,
        "total_steps": max(model.total_steps or 1, *(place.label.step for place in places), 1),
        "tokens_per_step": model.tokens_per_step,
        "checkpoints": checkpoints,
        "tokenizer": _tokenizer(name, model.task, source, places[-1], client),
        "config": _config(client, checkpoints),
    }
    if code := pinned_code(name, source, client):
        content["code"] = code
    return content, _summary(source, places, ignored, checkpoints)


def _places(source: Hub, client: Client) -> tuple[list[Place], list[str]]:
    """Labels in order with their commits, and the names that are no labels."""
    if "{step}" in source.repo:
        named = re.escape(source.repo).replace(re.escape("{step}"), r"\d+(?:\.\d+)?[kKMB]?")
        repos = [repo for repo in client.repos(source.repo) if re.fullmatch(named, repo)]
        candidates = [(repo, repo, "main") for repo in repos]
        commits = {repo: client.refs(repo) for repo in repos}
    else:
        commits = {source.repo: client.refs(source.repo)}
        candidates = [(name, source.repo, name) for name in commits[source.repo]]
    read = [(read_label(label, source.revisions.labels), repo, revision) for label, repo, revision in candidates]
    places = [Place(label, repo, at, commits[repo][at]) for label, repo, at in read if label and at in commits[repo]]
    known = {place.label.text for place in places}
    ignored = sorted({label for label, _, _ in candidates} - known)
    if not places:
        raise DataError(
            f"hub: {source.repo}: none of its {len(candidates)} names is a label of "
            f"{source.revisions.labels!r} ({', '.join(ignored[:6]) or 'none'}); see revisions.labels"
        )
    return sorted(places, key=lambda place: (*place.label.order, place.label.text)), ignored


def _entry(place: Place, subfolder: str | None, tree: Files, per_step: int | None) -> dict[str, Any]:
    tokens = place.label.tokens
    if tokens is None and per_step is not None:
        tokens = per_step * place.label.step
    return {
        "label": place.label.text,
        "step": place.label.step,
        "tokens_seen": tokens,
        "repo": place.repo,
        "revision": place.revision,
        "subfolder": subfolder,
        "commit": place.commit,
        "files": needed(tree),
    }


def needed(tree: Files) -> Files:
    """What loading takes: the config, and weights with their index; ``.bin`` only where there is no safetensors."""
    safe, pickled = (_matching(tree, patterns) for patterns, _ in (SAFE, PICKLED))
    weights = safe or pickled
    index = _matching(tree, [SAFE[1] if safe else PICKLED[1]]) if len(weights) > 1 else {}
    return _matching(tree, ["config.json"]) | weights | index


def _matching(tree: Files, patterns: Iterable[str]) -> Files:
    return {name: tree[name] for name in sorted(tree) if any(fnmatch(name, pattern) for pattern in patterns)}


def _tokenizer(name: str, task: str, source: Hub, last: Place, client: Client) -> dict[str, Any]:
    """Where the tokenizer is, of images and audio the processor: named by the config, or beside the last checkpoint."""
    given = source.tokenizer
    repo, revision, subfolder, commit = last.repo, last.revision, source.subfolder, last.commit
    if given is not None:
        repo, revision, subfolder = given.repo, given.revision, given.subfolder
        commit = client.refs(repo).get(revision, revision)
    place = {"repo": repo, "revision": revision, "subfolder": subfolder, "commit": commit}
    if task == "characters":
        return place | {"files": {}}
    files = _matching(client.files(repo, commit, subfolder), PROCESSOR if task in MEDIA else TOKENIZER)
    required = PROCESSOR if task in MEDIA else TOKENIZER[:2]
    if not set(required) & set(files):
        raise DataError(
            f"models.{name}.source.tokenizer: {repo} at {revision} holds no {' or '.join(required)}; "
            f"name a repo that does, as tokenizer: {{repo: ORG/NAME}}"
        )
    return place | {"files": files}


def _config(client: Client, checkpoints: list[dict[str, Any]]) -> dict[str, Any]:
    """The config.json of the first checkpoint that has one; empty where none has."""
    first = next((entry for entry in checkpoints if "config.json" in entry["files"]), None)
    if first is None:
        return {}
    path = path_in_repo(first["subfolder"], "config.json")
    with TemporaryDirectory() as folder:
        text = client.download(first["repo"], first["commit"], path, Path(folder)).read_text(encoding="utf-8")
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _summary(source: Hub, places: list[Place], ignored: list[str], checkpoints: list[dict[str, Any]]) -> str:
    """A few lines: what was found, what was left out, what lacks weights."""
    size = sum(file["bytes"] for entry in checkpoints for file in entry["files"].values()) / 1e9
    bare = [entry["label"] for entry in checkpoints if not any(_is_weight(name) for name in entry["files"])]
    pickled = sum(any(name.endswith(".bin") for name in entry["files"]) for entry in checkpoints)
    first, last = places[0].label, places[-1].label
    lines = [f"{source.repo}: {len(places)} checkpoints, {first.text} to {last.text}, {size:.2f} GB of weights"]
    if ignored:
        lines.append(f"  {len(ignored)} other names ignored: {_few(ignored)}")
    if bare:
        lines.append(f"  {len(bare)} without weights, to be left out of the statistics: {_few(bare)}")
    if pickled:
        lines.append(f"  {pickled} with pytorch_model.bin only, read as weights and nothing else")
    return "\n".join(lines)


def _is_weight(name: str) -> bool:
    return name.endswith((".safetensors", ".bin"))


def _few(names: list[str]) -> str:
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")
