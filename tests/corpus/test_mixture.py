"""Mixtures: shares hold in every beginning, order comes from the seed alone, a part that is over ends them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isotrace.corpus.documents import Document
from isotrace.corpus.mixture import mix
from isotrace.errors import DataError


def corpus(name: str, lengths: list[int]) -> list[Document]:
    return [Document(id=str(i), title="", text="x" * n, corpus=name) for i, n in enumerate(lengths)]


lengths = st.lists(st.integers(0, 50), min_size=1, max_size=30)
weights = st.floats(0.01, 100)


@given(a=lengths, b=lengths, c=lengths, w=st.tuples(weights, weights, weights), seed=st.integers(0, 9))
def test_every_beginning_holds_the_shares_to_within_a_document(a, b, c, w, seed):
    parts = {name: corpus(name, found) for name, found in (("a", a), ("b", b), ("c", c))}
    shares = dict(zip(parts, w, strict=True))
    longest = {name: max(len(d.text) for d in found) for name, found in parts.items()}
    taken = dict.fromkeys(parts, 0)
    for document in mix(parts, shares, seed):
        taken[document.corpus] += len(document.text)
        total = sum(taken.values())
        for name in parts:
            assert taken[name] <= shares[name] / sum(w) * total + longest[name] + 1e-6


@given(found=lengths, seed=st.integers(0, 9))
def test_one_part_gives_each_of_its_documents_once(found, seed):
    parts = {"a": corpus("a", found)}
    assert sorted(mix(parts, {"a": 0.3}, seed), key=lambda d: int(d.id)) == parts["a"]


def test_the_scale_of_weights_and_the_order_of_parts_do_not_matter():
    parts = {"a": corpus("a", [3, 1, 4, 1, 5] * 9), "b": corpus("b", [2, 7, 1, 8] * 9)}
    found = list(mix(parts, {"a": 1.0, "b": 2.0}, 0))
    assert found == list(mix(dict(reversed(parts.items())), {"b": 4.0, "a": 2.0}, 0))
    assert found != list(mix(parts, {"a": 1.0, "b": 2.0}, 1))


def test_shares_of_documents_of_one_length_are_exact_and_the_scarce_part_ends_the_mixture():
    parts = {"a": corpus("a", [10] * 100), "b": corpus("b", [10] * 4)}
    found = [d.corpus for d in mix(parts, {"a": 3.0, "b": 1.0}, 0)]
    assert [found[i : i + 4].count("b") for i in range(0, 16, 4)] == [1, 1, 1, 1]
    assert (found[16:], found.count("b")) == (["a"], 4)


def test_a_part_without_documents_is_named():
    with pytest.raises(DataError, match="corpus b: no documents"):
        list(mix({"a": corpus("a", [1]), "b": []}, {"a": 1.0, "b": 1.0}, 0))
