"""Printable text of token ids."""

import json

from hypothesis import given
from hypothesis import strategies as st

from isotrace.corpus.pieces import pieces, printable
from isotrace.corpus.tokenizer import load_tokenizer, train_tokenizer

TEXT = "the cat and the other cat\n" * 30 + "naïve 猫 "


def test_pieces_are_what_the_tokenizer_decodes(tmp_path):
    train_tokenizer([TEXT], tmp_path, {"vocab_size": 280, "objective": "clm"})
    slow = load_tokenizer(tmp_path)
    found = pieces(tmp_path / "tokenizer.json", range(len(slow)))
    known = {i: slow.decode([i]) for i in found}
    whole = {i: text for i, text in known.items() if "\ufffd" not in text and text.isprintable()}
    assert " the" in whole.values()
    assert {i: found[i] for i in whole} == whole
    assert found[slow.encode("\n")[0]] == "\\n"
    assert all(text and text.isprintable() and "\ufffd" not in text for text in found.values())


def test_a_part_of_a_character_keeps_its_name(tmp_path):
    train_tokenizer([TEXT], tmp_path, {"vocab_size": 257, "objective": "clm"})
    ids = load_tokenizer(tmp_path).encode("猫")
    vocabulary = json.loads((tmp_path / "tokenizer.json").read_text())["model"]["vocab"]
    names = {i: name for name, i in vocabulary.items()}
    assert len(ids) == 3
    assert list(pieces(tmp_path / "tokenizer.json", ids).values()) == [names[i] for i in ids]


def test_a_folder_without_a_tokenizer_json_is_read_all_the_same(tmp_path):
    (tmp_path / "fast").mkdir()
    train_tokenizer([TEXT], tmp_path / "fast", {"vocab_size": 280, "objective": "mlm"})
    from transformers import ByT5Tokenizer

    ByT5Tokenizer().save_pretrained(tmp_path / "slow")
    assert not (tmp_path / "slow" / "tokenizer.json").exists()
    found = pieces(tmp_path / "slow" / "tokenizer_config.json", [3 + ord("a"), 3 + 0x0A])
    assert list(found.values()) == ["a", "\\n"]


@given(st.text(max_size=8), st.text(min_size=1, max_size=4))
def test_every_label_is_printable(text, name):
    assert printable(text, name).isprintable()


def test_an_id_that_decodes_to_nothing_shows_its_name():
    assert printable("", "[PAD]") == "[PAD]"
    assert printable("a\x00b", "x") == "a\\x00b"
