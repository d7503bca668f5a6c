"""The job that takes the place of a capture for images, audio and characters: the same sealed stores are filled.

Sequences are images, clips or stretches of text; tokens patches, frames (which have no ids) or characters (our choice).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from isotrace.capture.accumulate import GROUPS
from isotrace.capture.attention import Unavailable, grouped_sums
from isotrace.capture.device import place, repeatable
from isotrace.capture.heads import write_heads
from isotrace.capture.sites import choose as choose_sites
from isotrace.capture.trace import as_tensor
from isotrace.checkpoints.load import load_model
from isotrace.checkpoints.unread import captured_from
from isotrace.corpus.buckets import NONE, bucket_of_ids
from isotrace.corpus.tokens import EVAL
from isotrace.geometry.jackknife import group_labels
from isotrace.ownership import Attempt, claim
from isotrace.perception.characters import places
from isotrace.perception.given import Given, bucket_of_positions, characters_of, coordinates_of, given
from isotrace.perception.heads import head_of
from isotrace.perception.held import Held
from isotrace.perception.masks import Hidden, none_hidden
from isotrace.perception.passes import NO_HEAD, asked, forward, shape_of, streams, traced
from isotrace.perception.tokens import seen
from isotrace.store import create, fingerprint, seal_empty
from isotrace.vectors.choose import Chosen, Counts, choose
from isotrace.vectors.contents import VECTORS, Coordinates, Layout
from isotrace.vectors.stores import check_size, sample_digest, write_stores

OWN_ANSWER = "there is no held-out loss: the head is asked for its own answer"
NOT_BY_ROW = "the loss of what is hidden is not kept by row"
NO_IDS = "patches and frames have no token ids"


def perceive(
    audit_path: Path,
    *,
    cache: Path,
    moments: Path,
    heads: Path,
    spec: dict[str, Any],
    documents: Path | None = None,
    processor: Path | None = None,
    rows_at: str | None = None,
) -> None:
    """Seal rows, moments and attention sums of one checkpoint; tombstones where it is broken.

    spec: ``model``, ``checkpoint``, ``objective``, ``task`` (image | audio | characters), ``corpus`` (its block; of
    characters the text is in ``documents``, and ``length``, ``buckets``, ``exclude_first`` say how it is read),
    ``sequences`` and ``rows_per_bucket`` ({fit, eval}), ``eval_fraction``, ``names`` (of the buckets), ``energy``
    (whether they are quantiles of it), ``sites``, ``dtype``, ``device``, ``batch_size``, ``store``, ``seed``,
    ``threads``. processor: the folder of one, None for the checkpoint's own; rows_at: as of a capture.
    """
    audit = json.loads(audit_path.read_text(encoding="utf-8"))
    attributes = captured_from(audit, spec, loss_reduction="sum", compute_dtype=spec["dtype"])
    making = fingerprint(spec)
    with claim(cache, moments, heads, away={cache: rows_at}) as (cache_attempt, moments_attempt, heads_attempt):
        if audit["status"] == "broken":
            for attempt in (cache_attempt, moments_attempt, heads_attempt):
                seal_empty(attempt, attributes=attributes, fingerprint=making, reason=audit["reason"])
            return
        repeatable(spec["threads"])
        folder = Path(audit["source"]["path"])
        read = given(processor or folder, spec, documents)
        loaded = load_model(folder, spec["task"], dtype=spec["dtype"], config=audit["config"])
        model = place(loaded, spec["device"])
        plan = _plan(model, read, spec)
        attributes |= {
            "sample_digest": hashlib.sha256(f"{read.digest}{plan.digest}".encode()).hexdigest()[:16],
            "model_sites": plan.every,
            "moments_tokens": "sample",
            "special_ids": [],
            "missing": _missing(model, read),
        }
        _seal_heads(model, read, plan.rows, heads_attempt, attributes, spec)
        held = Held(folder, _rows(model, plan, read, spec))
        stored = spec | {"arrays": {name: name if name in held.names() else None for name in VECTORS}}
        with (
            create(moments_attempt, attributes, making) as moments_root,
            create(cache_attempt, attributes, making) as cache_root,
        ):
            stores, counts = {"cache": cache_root, "moments": moments_root}, Counts(read.counts, ())
            write_stores(held, plan.of, plan.rows.known, plan.rows.chosen, counts, **stores, spec=stored)


def _missing(model: nn.Module, read: Given) -> dict[str, str]:
    """What the stores lack, and why."""
    head = head_of(model)
    ids = {} if read.counts.size else {"token_id": NO_IDS}
    if head is None:
        return ids | {"gradient": NO_HEAD, "loss": NO_HEAD}
    return ids | {"loss": NOT_BY_ROW if head.hides else OWN_ANSWER}


def _seal_heads(
    model: nn.Module,
    read: Given,
    rows: "_Rows",
    heads: Attempt,
    attributes: dict[str, Any],
    spec: Mapping[str, Any],
) -> None:
    """Attention sums over the evaluation pieces, from the pass that the rows are of.

    In attention every position is a key, a class token and what pads a clip among them; those two are of no bucket.
    """
    making, held = fingerprint(dict(spec)), np.flatnonzero(read.split == EVAL)
    group = group_labels(read.sequence[held], GROUPS)
    how: dict[str, Any] = {"group": group, "batch_size": spec["batch_size"]}
    inputs = read.values[held]
    if not read.counts.size:
        inputs, how["run"] = held, lambda pieces: _passed(model, read, rows.hidden, pieces)
    try:
        sums = grouped_sums(model, inputs, rows.bucket_at[held], tuple(spec["names"]), **how)
    except Unavailable as missing:
        seal_empty(heads, attributes=attributes, fingerprint=making, reason=str(missing))
        return
    with create(heads, attributes, making) as root:
        write_heads(root, sums)


def _passed(model: nn.Module, read: Given, hidden: Hidden, pieces: NDArray[np.intp]) -> None:
    values = _tensor(model, read.values[pieces])
    forward(model, read.name, values, asked(model, hidden.of(pieces), values.device))


@dataclass(frozen=True)
class _Plan:
    """Sites to keep and the names of all, the layout of the m rows to keep, and which they are."""

    sites: dict[str, nn.Module]
    every: list[str]
    of: Layout
    rows: "_Rows"

    @property
    def digest(self) -> str:
        """Of which rows are kept."""
        return sample_digest(self.rows.known, self.rows.chosen)


@dataclass(frozen=True)
class _Rows:
    """The rows to keep, in the order of the stores, and where they are in a stream.

    bucket_at: of every position of every piece, (p, T); hidden: what the head is to fill in; offset: positions before
    the first patch; length: characters of a sequence, 0 for images and audio.
    """

    known: Coordinates
    chosen: Chosen
    bucket_at: NDArray[np.int16]
    hidden: Hidden
    offset: int = 0
    length: int = 0

    def at(self, rows: NDArray[np.intp], stream: int) -> torch.Tensor:
        """Positions of some rows in a stream of so many."""
        position = self.known.position[rows] + self.offset
        return torch.as_tensor(places(position, length=self.length, stream=stream) if self.length else position)


def _plan(model: nn.Module, read: Given, spec: Mapping[str, Any]) -> _Plan:
    two = _tensor(model, read.values[:2])
    found = streams(model, read.name, two)
    sites = {name: found[name] for name in choose_sites(list(found), spec["sites"])}
    positions, d = shape_of(model, sites, read.name, two)
    rows = (_characters if read.counts.size else _tokens)(model, read, positions, spec)
    at = rows.chosen.rows
    kept: dict[str, Any] = {n: v[at] for n, v in vars(rows.known).items() if isinstance(v, np.ndarray)}
    of = Layout(tuple(sites), len(at), d, flat=False)
    check_size(of, rows.chosen, spec)
    in_order = replace(rows, known=replace(rows.known, **kept), chosen=replace(rows.chosen, rows=np.arange(of.n)))
    return _Plan(sites, list(found), of, in_order)


def _tokens(model: nn.Module, read: Given, positions: int, spec: Mapping[str, Any]) -> _Rows:
    """Patches or frames."""
    config: Any = model.config
    how: dict[str, Any] = {"patch": getattr(config, "patch_size", None), "where": type(model).__name__}
    tokens = seen(read.name, read.values, read.mask, positions=positions, **how)
    hidden = _hidden(model, read, tokens.real.shape[1], spec["seed"])
    known, bucket = coordinates_of(read, tokens, spec, hidden)
    chosen = choose(known, Counts(read.counts, ()), {**spec, "exclude_first": False}, bucket=bucket)
    return _Rows(known, chosen, bucket_of_positions(read, tokens, bucket, positions), hidden, tokens.offset)


def _hidden(model: nn.Module, read: Given, number: int, seed: int) -> Hidden:
    """What the head of a model is asked to fill in, of so many patches or frames a piece."""
    head = head_of(model)
    if head is None or head.hides is None:
        return none_hidden(len(read.sequence), number)
    return head.hides(model.config, map(int, read.sequence), number, seed)


def _characters(model: nn.Module, read: Given, _positions: int, spec: Mapping[str, Any]) -> _Rows:
    """Characters at which a molecule begins."""
    config: Any = model.config
    by, length = spec["buckets"], read.values.shape[1]
    known = characters_of(read, config.downsampling_rate)
    number = None if by["edges"] is not None else by["number"]
    bucket_at = bucket_of_ids(read.counts, (), by["kind"], n=number, edges=by["edges"])[read.values]
    if spec["exclude_first"]:
        bucket_at[:, 0] = NONE
    chosen = choose(known, Counts(read.counts, ()), spec)
    return _Rows(known, chosen, bucket_at, none_hidden(*read.values.shape), length=length)


def _rows(model: nn.Module, plan: _Plan, read: Given, spec: Mapping[str, Any]) -> dict[str, NDArray[np.float32]]:
    """Activations, and gradients where there are any, of the rows to keep, (site, m, d); a batch of pieces a pass."""
    names = VECTORS if head_of(model) else VECTORS[:1]
    found = {name: np.zeros((len(plan.of.sites), plan.of.n, plan.of.d), np.float32) for name in names}
    piece = np.searchsorted(read.sequence, plan.rows.known.sequence)
    for start in range(0, len(read.sequence), spec["batch_size"]):
        end = start + spec["batch_size"]
        mine = np.flatnonzero((piece >= start) & (piece < end))
        sequence = torch.as_tensor(piece[mine] - start)
        hidden = plan.rows.hidden.of(slice(start, end))
        passed = traced(model, plan.sites, read.name, _tensor(model, read.values[start:end]), hidden)
        for name, by_site in zip(names, passed, strict=False):
            for i, stream in enumerate(by_site.values()):
                at = plan.rows.at(mine, stream.shape[1])
                found[name][i, mine] = stream.cpu()[sequence, at].numpy()
    return found


def _tensor(model: nn.Module, values: NDArray[Any]) -> torch.Tensor:
    first = next(model.parameters())
    if values.dtype.kind == "i":
        return as_tensor(values, first.device)
    return torch.from_numpy(np.ascontiguousarray(values)).to(device=first.device, dtype=first.dtype)
