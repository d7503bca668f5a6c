"""Documents to fixed-length sequences of token ids, their counts, and the split into fit and eval.

Packing, counts over the rows of the embedding and the split by a seeded hash of the sequence are our choice.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.documents import Owner
from isotrace.corpus.tokenizer import tokenizer_digest
from isotrace.errors import DataError
from isotrace.seeding import derived_seed

FIT, EVAL = 0, 1
_BATCH = 64


@dataclass(frozen=True)
class Tokens:
    """A tokenized corpus of S sequences of T positions over an embedding of V rows.

    ids (S, T) int32; document (S, T) int32, the index of the text a token came from; counts (V,) int64 of the
    kept tokens, special ids 0; split (S,) int8, 0 fit and 1 eval; special_ids (sorted).
    """

    ids: NDArray[np.int32]
    document: NDArray[np.int32]
    counts: NDArray[np.int64]
    split: NDArray[np.int8]
    special_ids: tuple[int, ...]
    tokenizer_digest: str

    def sequences(self, split: int) -> NDArray[np.int64]:
        """Indices of the sequences of one split (FIT or EVAL)."""
        return np.flatnonzero(self.split == split)


def tokenize(texts: Iterable[str], tokenizer: Any, spec: dict[str, Any]) -> Tokens:
    """Pack texts into sequences without padding; an incomplete last sequence is left out.

    spec: ``sequence_length`` T, ``context`` (the model's longest input), ``add_bos`` (each sequence begins with
    BOS or CLS), ``separate_documents`` (EOS or SEP after each text), ``embedding_rows`` V, ``eval_fraction``,
    ``seed``, ``max_sequences`` (None: all). DataError where these cannot hold.
    """
    length = spec["sequence_length"]
    if length > spec["context"]:
        raise DataError(f"sequence_length {length} exceeds the model's context {spec['context']}; lower it")
    bos = [_special_id(tokenizer, ("bos_token_id", "cls_token_id"), "add_bos")] if spec["add_bos"] else []
    ids, document = _stream(texts, tokenizer, spec)
    width = length - len(bos)
    n_sequences = min(ids.size // width, spec["max_sequences"] or ids.size)
    if n_sequences == 0:
        raise DataError(f"the corpus has {ids.size} tokens, fewer than one sequence of {width}; add documents")
    ids, document = (flat[: n_sequences * width].reshape(n_sequences, width) for flat in (ids, document))
    if bos:
        ids = np.concatenate([np.full((n_sequences, 1), bos[0], np.int32), ids], axis=1)
        document = np.concatenate([document[:, :1], document], axis=1)
    special_ids = tuple(sorted(int(i) for i in tokenizer.all_special_ids))
    return Tokens(
        ids=ids,
        document=document,
        counts=counted(ids, special_ids, spec["embedding_rows"]),
        split=_split(n_sequences, spec["seed"], spec["eval_fraction"]),
        special_ids=special_ids,
        tokenizer_digest=tokenizer_digest(tokenizer),
    )


def tokens_by_corpus(tokens: Tokens, owners: Sequence[Owner]) -> dict[str, dict[str, str | int | None]]:
    """What each corpus gave: ``{corpus: {language, n_tokens}}`` over all kept positions, specials among them.

    ``owners`` are those of the texts that were tokenized, in their order.
    """
    number = np.bincount(tokens.document.ravel(), minlength=len(owners))
    found: dict[str, dict[str, str | int | None]] = {}
    for corpus, language in sorted({(owner.corpus, owner.language) for owner in owners}, key=str):
        theirs = np.array([owner.corpus == corpus for owner in owners])
        found[corpus] = {"language": language, "n_tokens": int(number[theirs].sum())}
    return found


def _special_id(tokenizer: Any, roles: tuple[str, ...], switch: str) -> int:
    for role in roles:
        value = getattr(tokenizer, role, None)
        if value is not None:
            return int(value)
    raise DataError(f"{switch} is on, but the tokenizer has no {' or '.join(roles)}; switch it off")


def _stream(texts: Iterable[str], tokenizer: Any, spec: dict[str, Any]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """All ids in one row and the index of each one's text, up to ``max_sequences`` sequences' worth."""
    roles = ("eos_token_id", "sep_token_id")
    end = [_special_id(tokenizer, roles, "separate_documents")] if spec["separate_documents"] else []
    wanted = spec["max_sequences"] and spec["max_sequences"] * spec["sequence_length"]
    parts, owners, total = [np.empty(0, np.int32)], [np.empty(0, np.int32)], 0
    for index, encoded in enumerate(_encoded(texts, tokenizer)):
        parts.append(np.array([*encoded, *end], np.int32))
        owners.append(np.full(parts[-1].size, index, np.int32))
        total += parts[-1].size
        if wanted and total >= wanted:
            break
    return np.concatenate(parts), np.concatenate(owners)


def _encoded(texts: Iterable[str], tokenizer: Any) -> Iterator[list[int]]:
    remaining = iter(texts)
    while batch := list(islice(remaining, _BATCH)):
        # verbose: a document longer than model_max_length is normal here, since it is packed afterwards.
        yield from tokenizer(batch, add_special_tokens=False, truncation=False, verbose=False)["input_ids"]


def counted(ids: NDArray[np.int32], special_ids: tuple[int, ...], rows: int) -> NDArray[np.int64]:
    """How often each id of an embedding of so many rows occurs, (V,); special ids 0. DataError for an id beyond."""
    if int(ids.max()) >= rows:
        raise DataError(
            f"token id {int(ids.max())} has no embedding row (there are {rows}); the tokenizer is another's"
        )
    counts = np.bincount(ids.ravel(), minlength=rows).astype(np.int64)
    counts[[i for i in special_ids if i < rows]] = 0
    return counts


def split_of(sequences: Iterable[int], seed: int, eval_fraction: float) -> NDArray[np.int8]:
    """FIT or EVAL of each sequence, by its number alone."""
    # A hash of each index, not a permutation: a longer corpus leaves the split of its first sequences alone.
    draws = np.array([derived_seed(seed, "split", i) / 2**63 for i in sequences])
    return np.where(draws < eval_fraction, EVAL, FIT).astype(np.int8)


def _split(n_sequences: int, seed: int, eval_fraction: float) -> NDArray[np.int8]:
    split = split_of(range(n_sequences), seed, eval_fraction)
    if len(np.unique(split)) < 2:
        raise DataError(f"{n_sequences} sequences leave fit or eval empty; add documents or change eval_fraction")
    return split
