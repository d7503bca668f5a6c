"""A sample of sequences that a training loop holds out, drawn as the workflow draws its own and kept in memory."""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotrace.corpus.buckets import bucket_of_ids
from isotrace.corpus.stores import Passes, passes_in_memory
from isotrace.corpus.tokens import Tokens, counted
from isotrace.errors import DataError


def held_out_passes(
    ids: NDArray[np.integer],
    tokenizer: Any,
    *,
    objective: Literal["clm", "mlm"] = "clm",
    sequences: tuple[int, int] = (16, 24),
    rows_per_bucket: tuple[int, int] = (256, 256),
    buckets: int = 4,
    seed: int = 0,
) -> Passes:
    """Positions of some of the packed sequences ids (S, T): every second one may be fitted on, the others measured.

    sequences and rows_per_bucket are (fit, eval), of each bucket; buckets of about equal token mass are counted over
    ``ids``. Masks are those of the config's defaults. DataError where ``ids`` are too few, or a tokenizer has no mask.
    """
    if objective == "mlm" and tokenizer.mask_token_id is None:
        raise DataError("objective mlm: the tokenizer has no mask token; use clm or another tokenizer")
    special = tuple(sorted(int(i) for i in tokenizer.all_special_ids))
    held = np.asarray(ids, np.int32)
    tokens = Tokens(
        ids=held,
        document=np.zeros_like(held),
        counts=counted(held, special, max(len(tokenizer), int(held.max()) + 1)),
        split=(np.arange(len(held)) % 2).astype(np.int8),
        special_ids=special,
        tokenizer_digest="",
    )
    drawn = {
        "seed": seed,
        "objective": objective,
        "bucket_by": "input",
        "exclude_first": True,
        "sequences": dict(zip(("fit", "eval"), sequences, strict=True)),
        "rows_per_bucket": dict(zip(("fit", "eval"), rows_per_bucket, strict=True)),
        "mask_rate": 0.3,
        "mask_draws": 1,
        "replace": [0.8, 0.1, 0.1],
        "mask_token_id": tokenizer.mask_token_id,
        "random_ids": len(tokenizer),
    }
    return passes_in_memory(tokens, bucket_of_ids(tokens.counts, special, "mass", n=buckets), drawn)
