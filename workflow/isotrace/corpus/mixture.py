"""Documents of several corpora in one stream whose every beginning holds their shares; our choice.

A share is of characters: tokens would need a tokenizer, and two models would then read different mixtures.
"""

from collections.abc import Iterator, Mapping, Sequence

from isotrace.corpus.documents import Document
from isotrace.errors import DataError
from isotrace.seeding import generator


def mix(parts: Mapping[str, Sequence[Document]], weights: Mapping[str, float], seed: int) -> Iterator[Document]:
    """Each part in an order drawn from (seed, its name); next comes the part furthest behind its share.

    Ends when that part has no more documents. In any beginning of N characters a part of share s holds at most
    s N characters and one document of its own. DataError names a part without documents.
    """
    order = {}
    for name in sorted(weights):
        if not parts[name]:
            raise DataError(f"corpus {name}: no documents to mix")
        order[name] = generator(seed, "mixture", name).permutation(len(parts[name]))
    taken, position = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    while True:
        name = min(order, key=lambda part: taken[part] / weights[part])
        if position[name] == len(order[name]):
            return
        document = parts[name][order[name][position[name]]]
        taken[name] += len(document.text)
        position[name] += 1
        yield document
