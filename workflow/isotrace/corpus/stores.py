"""Tokens and samples as sealed stores: what training and every capture of a model read."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.buckets import bucket_of_ids
from isotrace.corpus.sample import IGNORED, NO_TARGET, Sample, masks, position_buckets, sample
from isotrace.corpus.tokens import EVAL, Tokens
from isotrace.errors import DataError
from isotrace.store import create, digest, fingerprint, open_store, put, read_manifest

ROWS = ("sequence", "draw", "position", "token_id", "target_id", "bucket", "split", "masked")


@dataclass(frozen=True)
class Passes:
    """What is run through a model: p rows of T ids, and which positions of them are kept.

    inputs, targets, originals (p, T): ids shown, ids predicted (-100 for none), ids of the text; position_bucket
    (p, T): the bucket of every position that may be read, -1 elsewhere; sequence, split (p,); rows: the sampled
    positions, each array (n,), and ``at`` (n,), the pass each lies in.
    """

    inputs: NDArray[np.int32]
    targets: NDArray[np.int32]
    originals: NDArray[np.int32]
    position_bucket: NDArray[np.int16]
    sequence: NDArray[np.int32]
    split: NDArray[np.int8]
    rows: Mapping[str, NDArray[Any]]
    at: NDArray[np.int64]
    bucket_of: NDArray[np.int16]
    counts: NDArray[np.int64]
    special_ids: tuple[int, ...]
    exclude_first: bool
    digest: str


def write_tokens(manifest: Path, tokens: Tokens, spec: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
    """Seal packed sequences, counts and the split of one model."""
    named = {"tokenizer_digest": tokens.tokenizer_digest, "special_ids": list(tokens.special_ids), **attributes}
    with create(manifest, named, fingerprint(spec)) as root:
        put(root, "ids", tokens.ids, ("sequence", "position"))
        put(root, "document", tokens.document, ("sequence", "position"))
        put(root, "split", tokens.split, ("sequence",))
        put(root, "counts", tokens.counts, ("token",), units="tokens")


def read_tokens(manifest: Path) -> Tokens:
    """Sealed tokens, as arrays."""
    root: Any = open_store(manifest)
    arrays = {name: root[name][...] for name in ("ids", "document", "counts", "split")}
    digest = str(root.attrs["tokenizer_digest"])
    return Tokens(**arrays, special_ids=tuple(root.attrs["special_ids"]), tokenizer_digest=digest)


def write_sample(manifest: Path, tokens_manifest: Path, spec: Mapping[str, Any]) -> None:
    """Bucket the ids, draw the positions, mask what is masked, and seal it all."""
    tokens = read_tokens(tokens_manifest)
    buckets, wanted = spec["buckets"], spec["sample"]
    number = None if buckets["edges"] is not None else buckets["number"]
    bucket_of = bucket_of_ids(tokens.counts, tokens.special_ids, buckets["kind"], n=number, edges=buckets["edges"])
    drawn = {
        "seed": spec["seed"],
        "objective": spec["objective"],
        "bucket_by": buckets["by"],
        "exclude_first": wanted["exclude_first"],
        "sequences": wanted["sequences"],
        "rows_per_bucket": wanted["rows_per_bucket"],
    }
    if spec["objective"] == "mlm":
        drawn |= _masking(spec["masking"], read_manifest(tokens_manifest)["attributes"])
    chosen = sample(tokens, bucket_of, drawn)
    passes = _passes(tokens, bucket_of, chosen, drawn, all_eval=spec["moments_tokens"] == "all")
    attributes = {
        "special_ids": list(tokens.special_ids),
        "tokenizer_digest": tokens.tokenizer_digest,
        "exclude_first": wanted["exclude_first"],
    }
    with create(manifest, attributes, fingerprint(spec)) as store:
        for name in ROWS:
            put(store, name, getattr(chosen, name), ("row",))
        for name, values in passes.items():
            put(store, name, values, ("pass", "step")[: values.ndim])
        put(store, "bucket_of", bucket_of, ("token",))
        put(store, "counts", tokens.counts, ("token",), units="tokens")


def _masking(masking: Mapping[str, Any], attributes: Mapping[str, Any]) -> dict[str, Any]:
    mask = attributes["mask_token_id"]
    if mask is None:
        raise DataError("objective mlm: the tokenizer has no mask token; use clm or another tokenizer")
    return {
        "mask_rate": masking["rate"],
        "mask_draws": masking["draws"],
        "replace": masking["replace"],
        "mask_token_id": mask,
        "random_ids": attributes["tokenizer_size"],
    }


def _passes(
    tokens: Tokens, bucket_of: NDArray[np.int16], chosen: Sample, spec: Mapping[str, Any], *, all_eval: bool
) -> dict[str, NDArray[Any]]:
    """The (sequence, draw) pairs that hold a sampled position, or every evaluation pair as well, in order.

    With what the model sees and predicts, and the bucket of every position that may be read.
    """
    pairs = np.stack([chosen.sequence, chosen.draw], axis=1).astype(np.int64)
    if all_eval:
        draws = np.arange(spec["mask_draws"] if spec["objective"] == "mlm" else 1)
        every = np.stack(np.meshgrid(tokens.sequences(EVAL), draws, indexing="ij"), axis=-1)
        pairs = np.concatenate([pairs, every.reshape(-1, 2)])  # (sequences, draws, 2) -> (pairs, 2)
    pairs = np.unique(pairs, axis=0)
    sequence, draw = pairs[:, 0].astype(np.int32), pairs[:, 1].astype(np.int16)
    originals = tokens.ids[sequence]
    if spec["objective"] == "mlm":
        inputs, targets = masks(originals, sequence, draw, dict(spec), tokens.special_ids)
    else:
        inputs, targets = originals, np.full_like(originals, IGNORED)
        targets[:, :-1] = originals[:, 1:]
    predicted = np.where(targets == IGNORED, NO_TARGET, targets)
    return {
        "inputs": inputs,
        "targets": targets,
        "originals": originals,
        "position_bucket": position_buckets(originals, predicted, bucket_of, dict(spec), tokens.special_ids),
        "pass_sequence": sequence,
        "pass_draw": draw,
        "pass_split": tokens.split[sequence],
    }


def passes_in_memory(tokens: Tokens, bucket_of: NDArray[np.int16], drawn: Mapping[str, Any]) -> Passes:
    """A sample that is drawn as ``write_sample`` draws it and kept nowhere; ``drawn`` as ``sample.sample`` reads it."""
    chosen = vars(sample(tokens, bucket_of, dict(drawn)))
    arrays = _passes(tokens, bucket_of, Sample(**chosen), drawn, all_eval=False)
    return Passes(
        **{name: arrays[name] for name in ("inputs", "targets", "originals", "position_bucket")},
        sequence=arrays["pass_sequence"],
        split=arrays["pass_split"],
        rows=chosen,
        at=_pass_of(chosen, arrays["pass_sequence"], arrays["pass_draw"]),
        bucket_of=bucket_of,
        counts=tokens.counts,
        special_ids=tokens.special_ids,
        exclude_first=bool(drawn["exclude_first"]),
        digest="",
    )


def _pass_of(
    rows: Mapping[str, NDArray[Any]], sequence: NDArray[np.integer], draw: NDArray[np.integer]
) -> NDArray[np.int64]:
    """The pass (n,) in which each sampled row lies; passes are sorted by (sequence, draw)."""
    key = sequence.astype(np.int64) * 2**16 + draw
    return np.asarray(np.searchsorted(key, rows["sequence"].astype(np.int64) * 2**16 + rows["draw"]))


def read_passes(manifest: Path) -> Passes:
    """A sealed sample, as arrays."""
    root: Any = open_store(manifest)
    rows = {name: root[name][...] for name in ROWS}
    return Passes(
        inputs=root["inputs"][...],
        targets=root["targets"][...],
        originals=root["originals"][...],
        position_bucket=root["position_bucket"][...],
        sequence=root["pass_sequence"][...],
        split=root["pass_split"][...],
        rows=rows,
        at=_pass_of(rows, root["pass_sequence"][...], root["pass_draw"][...]),
        bucket_of=root["bucket_of"][...],
        counts=root["counts"][...],
        special_ids=tuple(root.attrs["special_ids"]),
        exclude_first=bool(root.attrs["exclude_first"]),
        digest=digest(read_manifest(manifest)["files"]),
    )
