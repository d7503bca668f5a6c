"""Byte-level BPE: any text survives, special tokens have their roles, digests follow behaviour."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.corpus.tokenizer import load_tokenizer, tokenizer_digest, train_tokenizer
from isotrace.errors import ConfigError, DataError

AGAIN = """
import sys
from isotrace.corpus.tokenizer import train_tokenizer
texts = sys.stdin.read().split("\\x1f")
print(train_tokenizer(texts, sys.argv[1], {"vocab_size": 280, "objective": "clm"})["digest"])
"""


@given(text=st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_every_text_comes_back(tokenizers: dict[str, Any], text: str) -> None:
    tokenizer = tokenizers["clm"]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


def test_special_tokens_have_their_roles(tokenizers: dict[str, Any]) -> None:
    clm, mlm = tokenizers["clm"], tokenizers["mlm"]
    assert (clm.bos_token_id, clm.eos_token_id, clm.pad_token_id) == (0, 0, None)
    assert sorted(mlm.all_special_ids) == [0, 1, 2, 3, 4]
    assert mlm.convert_ids_to_tokens(mlm.mask_token_id) == "[MASK]"


def test_training_is_the_same_in_another_process(texts: list[str], tokenizers: dict[str, Any], tmp_path: Path) -> None:
    command = [sys.executable, "-c", AGAIN, str(tmp_path)]
    done = subprocess.run(command, input="\x1f".join(texts), text=True, capture_output=True, check=True)
    assert done.stdout.strip() == tokenizer_digest(tokenizers["clm"])


def test_the_digest_follows_behaviour_not_use(tokenizers: dict[str, Any], texts: list[str], tmp_path: Path) -> None:
    tokenizer = tokenizers["mlm"]
    before = tokenizer_digest(tokenizer)
    tokenizer(texts[:2], padding=True, truncation=True, max_length=5)
    assert tokenizer_digest(tokenizer) == before
    train_tokenizer(texts, tmp_path, {"vocab_size": 270, "objective": "mlm"})
    assert tokenizer_digest(load_tokenizer(tmp_path)) != before


def test_a_vocabulary_below_the_bytes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="below 257"):
        train_tokenizer(["text"], tmp_path, {"vocab_size": 100, "objective": "clm"})


def test_a_folder_without_a_tokenizer_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no tokenizer can be read"):
        load_tokenizer(tmp_path)
