"""The one door through which randomness enters: a seed from the config and labels that say what for."""

import hashlib

import numpy as np


def derived_seed(seed: int, *labels: str | int) -> int:
    """A 63-bit seed that depends on the study's seed and on every label, and on nothing else."""
    text = "\x1f".join([str(seed), *map(str, labels)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """A PCG64 generator for one use of randomness, e.g. ``generator(seed, "null", site, rank)``."""
    return np.random.Generator(np.random.PCG64(derived_seed(seed, *labels)))
