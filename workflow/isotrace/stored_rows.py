"""Rows of a sealed cache as float32, however they are stored.

Apart from the other readers, so that captures, which count rows again, reach no analysis.
"""

from typing import Any

from isotrace.encoding import Float32, decode
from isotrace.shard_reader import read_array

SPLITS = {"fit": 0, "eval": 1}


def read_rows(group: Any, name: str, sites: int | slice = slice(None)) -> Float32:
    """Rows of an array of a bucket, (n, d) for one site or (site, n, d), float32 however they are stored."""
    array = group[name]
    scaled = array.attrs.get("stored_dtype") == "float16"
    return decode(read_array(array, sites), read_array(group[f"{name}_scale"], sites) if scaled else None)
