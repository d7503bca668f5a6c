"""Config block for how tangent bases compare, and for the tokens that name their directions."""

from typing import Literal, get_args

from isotrace.settings.base import Block, key

Comparison = Literal["methods", "moving_to_fixed", "neighbours", "buckets", "halves", "local"]


class Subspaces(Block):
    """How tangent bases compare, and the tokens at either end of their directions."""

    comparisons: list[Comparison] = key(
        list(get_args(Comparison)),
        "methods: every two, controls among them; moving_to_fixed; neighbours: a checkpoint and the one before; "
        "buckets: a basis of one bucket and that of all; halves: of the fit sequences; local: of neighbourhoods",
    )
    draws: int = key(999, "Haar subspaces that overlaps are compared with", unit="subspaces", ge=1)
    neighbours: int = key(64, "rows of a neighbourhood, besides its own", unit="tokens", ge=2)
    points: int = key(200, "rows whose neighbourhoods are taken", unit="tokens", ge=1)
    components: int = key(
        8, "leading components whose tokens are shown, as far as bases.ranks go", unit="components", ge=1
    )
    top_tokens: int = key(10, "tokens shown at either end of a component", unit="tokens", ge=1)
    min_occurrences: int = key(3, "rows that a token type needs to be shown", unit="tokens", ge=1)
