"""The tokens at either end of each direction of a model's fixed bases, read at the last early checkpoint.

There the bases were still fitted, and tokens mean most of what they will; earlier ones know less. Our choice.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import zarr

from isotrace.bases import read_bases
from isotrace.corpus.pieces import pieces
from isotrace.geometry.components import component_table
from isotrace.geometry.rows import Bucket
from isotrace.readers import read_bucket, read_contextual


def components(
    cache: zarr.Group, bases: Sequence[Path], tokenizer: Path | None, spec: Mapping[str, Any]
) -> pd.DataFrame:
    """The table of one model: ends of the leading components of every site by every method, with the tokens' text.

    ``cache`` is the checkpoint's; evaluation rows name the directions, which they had no part in. Without a tokenizer
    the text stays empty. spec: methods, buckets, components, top_tokens, min_occurrences.
    """
    rows = read_contextual(cache, spec["buckets"])
    buckets = _bucket_of_types([read_bucket(cache, name, "eval") for name in spec["buckets"]])
    found = [basis for path in bases for basis in read_bases(path, "", ["fixed"]) if basis.method in spec["methods"]]
    frame = pd.concat([component_table(basis, rows, buckets, spec) for basis in found], ignore_index=True)
    ids = sorted({int(i) for i in frame["token_id"].dropna()})
    text = pieces(tokenizer, ids) if tokenizer else {}
    named = [text.get(i, "") if i is not pd.NA else "" for i in frame["token_id"]]
    return frame.assign(token=named, checkpoint=str(cache.attrs["checkpoint"]))


def _bucket_of_types(buckets: Sequence[Bucket]) -> dict[int, str]:
    """The bucket that holds most rows of each type: all of them, unless buckets are by the predicted token."""
    most: dict[int, tuple[int, str]] = {}
    for bucket in buckets:
        for token, n in Counter(bucket.token_id[~bucket.masked].tolist()).items():
            most[token] = max(most.get(token, (0, "")), (n, bucket.name), key=lambda held: held[0])
    return {token: name for token, (_, name) in most.items()}
