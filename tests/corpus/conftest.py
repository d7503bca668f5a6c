"""A small text and the tokenizers trained on it, shared by the corpus tests."""

from typing import Any

import pytest

from isotrace.corpus.tokenizer import load_tokenizer, train_tokenizer

WORDS = ("the", "of", "river", "stone", "and", "a", "north", "was", "letter", "moon")


@pytest.fixture(scope="session")
def texts() -> list[str]:
    """Forty documents of falling word frequency."""
    return [" ".join(WORDS[(i * j) % (1 + (i + j) % len(WORDS))] for j in range(60)) for i in range(1, 41)]


@pytest.fixture(scope="session")
def tokenizers(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One tokenizer an objective."""
    found = {}
    for objective in ("clm", "mlm"):
        folder = tmp_path_factory.mktemp(objective)
        train_tokenizer(texts, folder, {"vocab_size": 280, "objective": objective})
        found[objective] = load_tokenizer(folder)
    return found


@pytest.fixture
def token_spec() -> dict[str, Any]:
    """A spec of ``tokenize`` that holds for the shared texts."""
    return {
        "sequence_length": 16,
        "context": 16,
        "add_bos": False,
        "separate_documents": True,
        "embedding_rows": 300,
        "eval_fraction": 0.4,
        "seed": 0,
        "max_sequences": None,
    }
