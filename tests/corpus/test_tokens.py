"""Packing loses nothing but the last partial sequence; counts and split hold for every setting."""

from typing import Any

import numpy as np
import pytest
from transformers import PreTrainedTokenizerFast

from isotrace.corpus.documents import Owner
from isotrace.corpus.tokens import EVAL, FIT, tokenize, tokens_by_corpus
from isotrace.errors import DataError


def encode(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    return [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]


def test_sequences_are_the_stream_cut_into_pieces(
    texts: list[str], tokenizers: dict[str, Any], token_spec: dict[str, Any]
) -> None:
    tokens = tokenize(texts, tokenizers["clm"], token_spec)
    end = tokenizers["clm"].eos_token_id
    stream = [i for ids in encode(tokenizers["clm"], texts) for i in [*ids, end]]
    assert tokens.ids.ravel().tolist() == stream[: tokens.ids.size]
    assert len(stream) - tokens.ids.size < token_spec["sequence_length"]
    assert tokens.document[0, 0] == 0
    assert np.all(np.diff(tokens.document.ravel()) >= 0)


@pytest.mark.parametrize("objective", ["clm", "mlm"])
@pytest.mark.parametrize("add_bos", [False, True])
@pytest.mark.parametrize("separate", [False, True])
def test_counts_are_of_kept_ordinary_tokens(
    texts: list[str],
    tokenizers: dict[str, Any],
    token_spec: dict[str, Any],
    objective: str,
    add_bos: bool,
    separate: bool,
) -> None:
    spec = {**token_spec, "add_bos": add_bos, "separate_documents": separate}
    tokens = tokenize(texts, tokenizers[objective], spec)
    ordinary = ~np.isin(tokens.ids, tokens.special_ids)
    assert tokens.counts.shape == (300,)
    assert tokens.counts.sum() == ordinary.sum()
    assert not tokens.counts[list(tokens.special_ids)].any()
    assert np.all(~ordinary[:, 0]) == add_bos
    kept = [i for ids in encode(tokenizers[objective], texts) for i in ids]
    assert tokens.ids[ordinary].tolist() == kept[: ordinary.sum()]


def test_the_split_is_seeded_and_stable_under_growth(
    texts: list[str], tokenizers: dict[str, Any], token_spec: dict[str, Any]
) -> None:
    whole = tokenize(texts, tokenizers["clm"], token_spec)
    first = tokenize(texts, tokenizers["clm"], {**token_spec, "max_sequences": 20})
    other = tokenize(texts, tokenizers["clm"], {**token_spec, "seed": 1})
    assert first.ids.shape == (20, 16)
    assert np.array_equal(first.split, whole.split[:20])
    assert np.array_equal(first.ids, whole.ids[:20])
    assert not np.array_equal(other.split, whole.split)
    assert sorted([*whole.sequences(FIT), *whole.sequences(EVAL)]) == list(range(len(whole.ids)))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"sequence_length": 32}, "exceeds the model's context 16"),
        ({"embedding_rows": 50}, "no embedding row"),
        ({"sequence_length": 9000, "context": 9000}, "fewer than one sequence"),
        ({"eval_fraction": 0.0}, "leave fit or eval empty"),
    ],
)
def test_what_cannot_hold_is_an_error(
    texts: list[str], tokenizers: dict[str, Any], token_spec: dict[str, Any], change: dict[str, Any], says: str
) -> None:
    with pytest.raises(DataError, match=says):
        tokenize(texts[:8], tokenizers["clm"], {**token_spec, **change})


def test_a_switch_that_the_tokenizer_cannot_serve_is_named(
    texts: list[str], tokenizers: dict[str, Any], token_spec: dict[str, Any]
) -> None:
    bare = PreTrainedTokenizerFast(tokenizer_object=tokenizers["clm"].backend_tokenizer)
    with pytest.raises(DataError, match="add_bos is on, but the tokenizer has no bos_token_id"):
        tokenize(texts, bare, {**token_spec, "add_bos": True})


def test_tokens_are_counted_by_corpus_and_all_of_them(texts, tokenizers, token_spec):
    owners = [Owner("fr" if i % 3 else "en", "fr" if i % 3 else None) for i in range(len(texts))]
    tokens = tokenize(texts, tokenizers["clm"], token_spec)
    found = tokens_by_corpus(tokens, owners)
    assert found["en"] == {"language": None, "n_tokens": int((tokens.document % 3 == 0).sum())}
    assert found["fr"]["language"] == "fr"
    assert found["en"]["n_tokens"] + found["fr"]["n_tokens"] == tokens.ids.size
