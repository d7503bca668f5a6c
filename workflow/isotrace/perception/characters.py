"""CANINE (Clark et al. 2022): text as codepoints, and a stack that reads characters, then molecules of them.

A molecule counts as the character at which it begins, as in its attention adapter; which sites are read is our choice.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from isotrace.errors import DataError

_STACKS = ("initial_char_encoder", "encoder", "final_char_encoder")
BETWEEN = "\n"


def sequences_of(texts: Iterable[str], length: int) -> NDArray[np.int32]:
    """Codepoints (S, length) of all texts end to end, a line break between them; a rest is left out.

    DataError where they do not fill one sequence.
    """
    whole = BETWEEN.join(texts).encode("utf-32-le", "replace")
    ids = np.frombuffer(whole, "<u4").astype(np.int32)
    if ids.size < length:
        raise DataError(f"the corpus has {ids.size} characters, fewer than one sequence of {length}; add documents")
    return ids[: ids.size // length * length].reshape(-1, length)


def character_streams(model: Any) -> dict[str, nn.Module]:
    """``embed`` (by the block that reads it) and every block, of characters, of molecules, of characters again."""
    stacks = [getattr(model.base_model, name, None) for name in _STACKS]
    if not all(hasattr(stack, "layer") for stack in stacks):
        raise DataError(
            f"{type(model).__name__}: bytes without an objective are read by CANINE; of others name the loss"
        )
    blocks = [block for stack in stacks if stack is not None for block in stack.layer]
    return {"embed": blocks[0]} | {f"block.{i}": block for i, block in enumerate(blocks)}


def begins(length: int, rate: int) -> NDArray[np.intp]:
    """Positions of a sequence at which a molecule begins that the deep blocks hold; the last one they leave out."""
    return np.arange(0, length - rate, rate)


def places(position: NDArray[np.integer], *, length: int, stream: int) -> NDArray[np.integer]:
    """Where in a stream of so many entries each position is: its character, or its molecule after the class one."""
    return position if stream == length else position // -(-length // stream) + 1
