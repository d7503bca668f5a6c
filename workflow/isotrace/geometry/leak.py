"""Which evaluation rows are fit rows: of a sequence that both splits hold, or of the same text in two sequences.

A measure on rows that a basis was fitted on is not held out; how that is found is our choice.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isotrace.geometry.rows import Bucket, nonzero

Mask = NDArray[np.bool_]


def leaked_rows(
    evaluation: Bucket, fit: Bucket, *, fitted: NDArray[np.integer], model_sites: Sequence[str]
) -> tuple[Mask, str]:
    """Which rows (n,) of ``evaluation`` are fit rows, and why contents could not tell, or nothing.

    fitted: sequences of the fit split, of every bucket; model_sites: all sites of the model, by depth. Contents are
    the gradients at the first site, compared bit for bit. An activation depends on the tokens up to its own, so a
    shared first word makes two of them equal; the gradient of a sequence's loss depends on every later token too as
    long as attention lies above the site, so two are equal only where the whole sequences are.
    """
    by_sequence = np.isin(evaluation.sequence, fitted)
    first = evaluation.sites[0]
    if first not in _below_attention(model_sites):
        return by_sequence, f"no attention lies above {first}, the first site that was read"
    here, there = _contents(evaluation), _contents(fit)
    if _without_context([*here, *there]):
        return by_sequence, f"gradients at {first} are equal at different positions, so they hold no context"
    known = {content for content in there if content is not None}
    return by_sequence | np.array([content in known for content in here], bool), ""


def warning(leaked: Mask, *, where: str) -> str:
    """One line on leaked rows (n,), nothing if there are none."""
    if not leaked.any():
        return ""
    return (
        f"{where}: {int(leaked.sum())} of {leaked.size} evaluation rows are fit rows too, so what is measured there "
        f"is not held out; look for text that the corpus repeats"
    )


def _below_attention(model_sites: Sequence[str]) -> list[str]:
    """The sites above which a block follows."""
    blocks = [site for site in model_sites if site.startswith("block.")]
    return [site for site in ("embed", *blocks[:-1]) if site in model_sites and blocks]


Content = tuple[int, int, bytes] | None


def _contents(bucket: Bucket) -> list[Content]:
    """Position, token and bytes of each row's gradient at the first site; None of a row without a gradient."""
    values = bucket.gradients[0]
    kept = nonzero(values)
    labels = zip(bucket.position, bucket.token_id, values, kept, strict=True)
    return [(int(p), int(t), row.tobytes()) if keep else None for p, t, row, keep in labels]


def _without_context(contents: Sequence[Content]) -> bool:
    """Whether one gradient stands at two positions, as in a model whose attention passes nothing on yet."""
    at: dict[bytes, int] = {}
    return any(at.setdefault(content[2], content[0]) != content[0] for content in contents if content is not None)
