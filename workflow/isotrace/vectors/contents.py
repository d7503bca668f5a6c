"""What a dump says: its sites and width, its vectors a site at a time, and what is known of each row.

Every defect is a DataError of one line that names the dump and the array; which ones there are is our choice.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.errors import DataError
from isotrace.vectors.readers import Dump

VECTORS = ("activations", "gradients")
COORDINATES = ("token_id", "sequence", "position", "target_id", "split")
MOST_IDS = 2**24
"""Ids from here on are no ids of a vocabulary, and counts of them would not fit."""
_FLOATING = ("float16", "float32", "float64", "bfloat16")

Arrays = Mapping[str, str | None]


@dataclass(frozen=True)
class Layout:
    """Sites shallow to deep, n rows of width d; ``flat``: arrays have no axis of sites."""

    sites: tuple[str, ...]
    n: int
    d: int
    flat: bool


def layout(dump: Dump, arrays: Arrays, sites: Sequence[str] | None) -> Layout:
    """The shape that all arrays of vectors share, under the sites' names or, without any, those of blocks."""
    shape, _ = _about(dump, arrays["activations"])
    if len(shape) not in (2, 3) or 0 in shape:
        raise DataError(
            f"{dump.path}: {arrays['activations']} has shape {shape}; (site, token, feature) or (token, feature) of "
            f"at least one row"
        )
    flat = len(shape) == 2
    number = 1 if flat else shape[0]
    names = tuple(sites) if sites is not None else tuple(f"block.{i}" for i in range(number))
    if len(names) != number:
        raise DataError(f"{dump.path}: {number} sites in {arrays['activations']}, {len(names)} named in source.sites")
    for name in VECTORS:
        found, dtype = _about(dump, arrays[name]) if arrays[name] else (shape, "float32")
        if found != shape:
            raise DataError(
                f"{dump.path}: {arrays[name]} has shape {found}, but {arrays['activations']} has {shape}; they must "
                f"be of the same rows"
            )
        if dtype not in _FLOATING:
            raise DataError(f"{dump.path}: {arrays[name]} is {dtype}; vectors are {', '.join(_FLOATING)}")
    return Layout(names, shape[-2], shape[-1], flat)


def _about(dump: Dump, name: str | None) -> tuple[tuple[int, ...], str]:
    assert name is not None
    return dump.about(name)


def site_rows(dump: Dump, name: str, of: Layout, index: int) -> NDArray[np.floating]:
    """Vectors (n, d) of one site as they are stored; DataError where one is not finite."""
    rows = dump.read(name, None if of.flat else index)
    if not np.isfinite(rows).all():
        lost = int(np.sum(~np.isfinite(rows).all(axis=1)))
        raise DataError(f"{dump.path}: {lost} rows of {name} at {of.sites[index]} are not finite")
    return rows


@dataclass(frozen=True)
class Coordinates:
    """What is known of n rows, each array (n,), -1 for unknown ids and NaN for no loss.

    positions_known: whether a position counts from the sequence's start and not from its first row here.
    """

    token_id: NDArray[np.int64]
    sequence: NDArray[np.int64]
    position: NDArray[np.int64]
    target_id: NDArray[np.int64]
    split: NDArray[np.int64] | None
    loss: NDArray[np.float32]
    positions_known: bool
    masked: NDArray[np.bool_]


def coordinates(dump: Dump, arrays: Arrays, n: int) -> Coordinates:
    """Coordinates of n rows; without a sequence each row is its own, without a position rows count in order."""
    found = {name: _integers(dump, arrays[name], n) for name in COORDINATES if arrays[name]}
    for name, least in (("token_id", 0), ("target_id", -1), ("sequence", 0), ("position", 0), ("split", 0)):
        most = 1 if name == "split" else MOST_IDS - 1 if name.endswith("_id") else np.iinfo(np.int64).max
        values = found.get(name)
        if values is not None and not least <= values.min() <= values.max() <= most:
            raise DataError(f"{dump.path}: {arrays[name]} runs from {values.min()} to {values.max()}; {name} is "
                            f"{least} to {most}")  # fmt: skip
    unknown = np.full(n, -1, np.int64)
    sequence = found.get("sequence", np.arange(n))
    split = found.get("split")
    if split is not None:
        _no_leak(f"{dump.path}: {arrays['split']}", sequence, split)
    return Coordinates(
        token_id=found.get("token_id", unknown),
        sequence=sequence,
        position=found.get("position", _order(sequence)),
        target_id=found.get("target_id", unknown),
        split=split,
        loss=_losses(dump, arrays["loss"], n),
        positions_known="position" in found,
        masked=np.zeros(n, np.bool_),
    )


def _integers(dump: Dump, name: str | None, n: int) -> NDArray[np.int64]:
    shape, dtype = _about(dump, name)
    if shape != (n,) or not dtype.startswith(("int", "uint", "bool")):
        raise DataError(f"{dump.path}: {name} is {dtype} of shape {shape}; an integer for each of the {n} rows")
    assert name is not None
    return dump.read(name).astype(np.int64)


def _losses(dump: Dump, name: str | None, n: int) -> NDArray[np.float32]:
    if name is None:
        return np.full(n, np.nan, np.float32)
    shape, dtype = dump.about(name)
    if shape != (n,) or dtype not in _FLOATING:
        raise DataError(f"{dump.path}: {name} is {dtype} of shape {shape}; a floating number for each of the {n} rows")
    loss = dump.read(name).astype(np.float32)
    if np.isinf(loss).any():
        raise DataError(f"{dump.path}: {int(np.isinf(loss).sum())} of {name} are infinite")
    return loss


def _no_leak(what: str, sequence: NDArray[np.int64], split: NDArray[np.int64]) -> None:
    both = np.intersect1d(sequence[split == 0], sequence[split == 1])
    if both.size:
        raise DataError(f"{what} puts rows of sequence {both[0]} into fit and into eval; {both.size} such sequences")


def _order(sequence: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many rows of its sequence come before each row."""
    by_sequence = np.argsort(sequence, kind="stable")
    _, first, count = np.unique(sequence[by_sequence], return_index=True, return_counts=True)
    order: NDArray[Any] = np.empty(len(sequence), np.int64)
    order[by_sequence] = np.arange(len(sequence)) - np.repeat(first, count)
    return order
